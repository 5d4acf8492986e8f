from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from roundhouse.serve.engine.request import SamplingParams
from roundhouse.serve.openai.schemas import ChatRequest, CompletionRequest

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def completion(**fields: Any) -> CompletionRequest:
    return CompletionRequest.model_validate({"model": "m", "prompt": "hi", **fields})


@pytest.mark.parametrize(
    ("prompt", "one"), [("hi", "hi"), (["hi"], "hi"), ([1, 2], [1, 2]), ([[1, 2]], [1, 2]), ([], []), ("", "")]
)
def test_one_prompt_in_each_of_its_forms(prompt: object, one: object) -> None:
    assert completion(prompt=prompt).one_prompt == one


@pytest.mark.parametrize("prompt", [["a", "b"], [[1], [2]], [1, "a"], [-1], [1.5], None, {"text": "a"}])
def test_other_prompts_are_refused(prompt: object) -> None:
    with pytest.raises(ValidationError):
        completion(prompt=prompt)


def test_defaults_are_openais() -> None:
    assert completion().sampling == SamplingParams(max_tokens=16, temperature=1.0)
    assert completion(max_tokens=None, temperature=None, stop=None).sampling == completion().sampling
    assert ChatRequest.model_validate(CHAT).sampling.max_tokens == 2**31 - 1


def test_everything_given_reaches_the_sampler() -> None:
    fields = {"max_tokens": 3, "temperature": 0, "top_p": 0.5, "top_k": 4, "seed": 9, "stop": ["a", "b"], "ignore_eos": True}
    assert completion(**fields).sampling == SamplingParams(
        max_tokens=3, temperature=0.0, top_p=0.5, top_k=4, seed=9, stop=("a", "b"), ignore_eos=True
    )
    assert completion(stop="a").sampling.stop == ("a",)


def test_the_newer_name_of_max_tokens_wins() -> None:
    assert ChatRequest.model_validate({**CHAT, "max_tokens": 9, "max_completion_tokens": 5}).sampling.max_tokens == 5


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": -1},
        {"max_tokens": 10**9 * 5},
        {"max_tokens": "5"},
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_p": 0},
        {"top_p": 1.5},
        {"top_k": -1},
        {"seed": -1},
        {"stop": ""},
        {"stop": ["a", ""]},
        {"stream_options": {"include_usge": True}},
    ],
)
def test_impossible_values_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        completion(**fields)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 2),
        ("best_of", 3),
        ("logprobs", 5),
        ("echo", True),
        ("suffix", "end"),
        ("presence_penalty", 0.5),
        ("logit_bias", {"5": 1}),
        ("tools", [{"type": "function"}]),
        ("response_format", {"type": "json_object"}),
        ("temprature", 0.5),
    ],
)
def test_what_would_change_the_answer_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=f"not supported here: {name}"):
        completion(**{name: value})


def test_what_changes_nothing_is_accepted() -> None:
    completion(n=1, best_of=None, presence_penalty=0.0, tools=[], response_format={"type": "text"}, user="me", logprobs=None)


def test_messages_may_come_in_parts_of_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    request = ChatRequest.model_validate({"model": "m", "messages": [{"role": "user", "content": parts, "name": "x"}]})
    assert request.messages[0].for_template() == {"role": "user", "content": "ab", "name": "x"}


def test_images_and_no_messages_are_refused() -> None:
    image = {"type": "image_url", "image_url": {"url": "x"}}
    for messages in ([], [{"role": "user", "content": [image]}]):
        with pytest.raises(ValidationError):
            ChatRequest.model_validate({"model": "m", "messages": messages})
