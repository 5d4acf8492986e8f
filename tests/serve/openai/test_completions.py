"""`/v1/completions`: prompts in each form, several at once, echo, log-probabilities, usage."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fronts import Script, events, serving

from roundhouse.serve.engine.request import SamplingParams
from roundhouse.serve.openai.chat import ChatTemplate

HELLO = {"model": "m", "prompt": "Say hello."}


def test_a_whole_answer(http: httpx.Client, script: Script) -> None:
    script.answers, script.cached_tokens = ["hello there"], 7
    body = http.post("/completions", json=HELLO).json()
    assert body["object"] == "text_completion"
    assert body["choices"] == [{"index": 0, "finish_reason": "stop", "logprobs": None, "text": "hello there"}]
    assert body["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 7},
    }


def test_a_stream_ends_with_usage_when_asked(http: httpx.Client, script: Script) -> None:
    script.answers = ["hello you"]
    asked = {**HELLO, "stream": True, "stream_options": {"include_usage": True}}
    found = events(http.post("/completions", json=asked))
    assert [event["choices"][0]["text"] for event in found[:3]] == ["hel", "lo ", "you"]
    assert [event["choices"][0]["finish_reason"] for event in found[:3]] == [None, None, "stop"]
    assert all(event["usage"] is None for event in found[:3])
    assert (found[3]["choices"], found[3]["usage"]["total_tokens"]) == ([], 13)
    assert found[4] == "[DONE]"
    assert len({event["id"] for event in found[:4]}) == 1


def test_a_stream_has_no_usage_unless_asked(http: httpx.Client, script: Script) -> None:
    script.answers = ["hello you"]
    found = events(http.post("/completions", json={**HELLO, "stream": True}))
    assert len(found) == 4
    assert all("usage" not in event for event in found[:3])


@pytest.mark.parametrize("prompt", ["text", [1, 2, 3], ["text"], [[1, 2, 3]]])
def test_a_prompt_in_each_of_its_forms(http: httpx.Client, script: Script, prompt: Any) -> None:
    script.answers = ["ok"]
    assert http.post("/completions", json={**HELLO, "prompt": prompt}).status_code == 200
    assert script.asked[0].prompt == ("text" if "text" in prompt else [1, 2, 3])


@pytest.mark.parametrize("stream", [False, True])
def test_several_prompts_with_several_answers(http: httpx.Client, script: Script, stream: bool) -> None:
    script.answers = ["first", "second", "third"]
    response = http.post("/completions", json={**HELLO, "prompt": ["a", "bb", "ccc"], "n": 2, "stream": stream})
    choices = (
        [choice for event in events(response)[:-1] for choice in event["choices"]] if stream else response.json()["choices"]
    )
    texts = {index: "".join(choice["text"] for choice in choices if choice["index"] == index) for index in range(6)}
    assert texts == {0: "first", 1: "first", 2: "second", 3: "second", 4: "third", 5: "third"}
    assert sorted(choice["index"] for choice in choices if choice["finish_reason"] == "stop") == list(range(6))
    assert [asked.options.sampling.n for asked in script.asked] == [2, 2, 2]
    if not stream:
        assert [choice["index"] for choice in choices] == list(range(6))
        usage = response.json()["usage"]
        assert usage["prompt_tokens"] == 1 + 2 + 3  # each prompt once, whatever n is


def test_one_of_several_prompts_that_fails_ends_them_all(http: httpx.Client, script: Script) -> None:
    script.answers = ["fine", "[invalid_request] the prompt is empty", "fine"]
    response = http.post("/completions", json={**HELLO, "prompt": ["a", "", "c"]})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "prompt"
    assert script.closed == 3


@pytest.mark.parametrize("stream", [False, True])
def test_echo_puts_the_prompt_before_the_text(http: httpx.Client, script: Script, tokenizer: Any, stream: bool) -> None:
    script.answers = [" world", " world", " again"]
    ids = tokenizer.encode("hello", add_special_tokens=False)
    response = http.post("/completions", json={**HELLO, "prompt": [ids], "echo": True, "n": 2, "stream": stream})
    choices = (
        [choice for event in events(response)[:-1] for choice in event["choices"]] if stream else response.json()["choices"]
    )
    for index in range(2):
        assert "".join(choice["text"] for choice in choices if choice["index"] == index) == "hello world"


def test_log_probabilities(hermes: ChatTemplate, tokenizer: Any) -> None:
    script = Script(["a é"], tokenizer=tokenizer)
    with serving({"m": (hermes, script)}) as url:
        asked = {**HELLO, "logprobs": 2, "prompt": "x"}
        (choice,) = httpx.post(f"{url}/completions", json=asked, trust_env=False).json()["choices"]
    found = choice["logprobs"]
    assert script.asked[0].options.sampling.logprobs == 2
    assert found["tokens"] == ["a", "Ġ".replace("Ġ", " "), "bytes:\\xc3", "bytes:\\xa9"]
    assert found["text_offset"] == [0, 1, 2, 2]
    assert found["token_logprobs"] == [-0.5] * 4
    assert [len(top) for top in found["top_logprobs"]] == [2] * 4
    assert found["top_logprobs"][0]["a"] == -0.5


def test_log_probabilities_are_the_same_streamed(hermes: ChatTemplate, tokenizer: Any) -> None:
    script = Script(["a bc é", "a bc é"], tokenizer=tokenizer)
    with serving({"m": (hermes, script)}) as url, httpx.Client(base_url=url, trust_env=False) as http:
        (whole,) = http.post("/completions", json={**HELLO, "logprobs": 1}).json()["choices"]
        streamed = events(http.post("/completions", json={**HELLO, "logprobs": 1, "stream": True}))[:-1]
    parts = [event["choices"][0]["logprobs"] for event in streamed]
    assert len(parts) > 2
    assert {key: [entry for part in parts for entry in part[key]] for key in parts[0]} == whole["logprobs"]


def test_what_is_asked_reaches_the_engine(http: httpx.Client, script: Script) -> None:
    script.answers = ["ok"]
    fields = {
        "max_tokens": 3,
        "min_tokens": 1,
        "temperature": 0,
        "top_p": 0.5,
        "top_k": 4,
        "min_p": 0.1,
        "repetition_penalty": 1.5,
        "presence_penalty": 0.25,
        "frequency_penalty": -0.25,
        "logit_bias": {"7": -100},
        "seed": 9,
        "stop": ["a", "b"],
        "stop_token_ids": [5],
        "ignore_eos": True,
        "priority": -1,
        "cache_salt": "tenant",
        "deadline_s": 2.5,
    }
    assert http.post("/completions", json=HELLO | fields).status_code == 200
    options = script.asked[0].options
    assert options.sampling == SamplingParams(
        max_tokens=3,
        min_tokens=1,
        temperature=0.0,
        top_p=0.5,
        top_k=4,
        min_p=0.1,
        repetition_penalty=1.5,
        presence_penalty=0.25,
        frequency_penalty=-0.25,
        logit_bias={7: -100.0},
        seed=9,
        stop=("a", "b"),
        stop_token_ids=(5,),
        ignore_eos=True,
    )
    assert (options.priority, options.cache_salt, options.deadline_s) == (-1, "tenant", 2.5)


def test_guides_reach_the_engine(http: httpx.Client, script: Script) -> None:
    script.answers = ["ok"] * 2
    http.post("/completions", json=HELLO | {"guided_regex": "[a-z]+"})
    http.post("/completions", json=HELLO | {"response_format": {"type": "json_object"}})
    guides = [asked.options.sampling.guide for asked in script.asked]
    assert [(guide.kind, guide.text) for guide in guides if guide] == [("regex", "[a-z]+"), ("json_object", "")]


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"best_of": 2}, "best_of"),
        ({"n": 2, "best_of": 3}, "best_of"),
        ({"suffix": "end"}, "suffix"),
        ({"echo": True, "logprobs": 1}, "echo"),
        ({"logprobs": 21}, "logprobs"),
        ({"prompt": ["a"] * 3, "n": 100}, "n"),
        ({"prompt": ["a"] * 129}, "prompt"),
        ({"prompt": []}, None),
        ({"tools": []}, "tools"),
        ({"guided_regex": "a", "response_format": {"type": "json_object"}}, "guided_regex"),
    ],
)
def test_what_cannot_be_done_is_refused(http: httpx.Client, script: Script, changes: Any, param: str | None) -> None:
    script.answers = ["[invalid_request] nothing is asked"]
    response = http.post("/completions", json=HELLO | changes)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


def test_what_asks_for_nothing_is_accepted(http: httpx.Client, script: Script) -> None:
    script.answers = ["ok"]
    nothing = {
        "n": None,
        "best_of": 1,
        "suffix": "",
        "echo": False,
        "logprobs": None,
        "user": "me",
        "stop": None,
        "stream": None,
    }
    assert http.post("/completions", json=HELLO | nothing | {"response_format": {"type": "text"}}).status_code == 200
