"""The official client against a real deployment: a tiny engine behind Triton, with everything in between."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from fronts import HERMES_TEMPLATE

from roundhouse.build.home import Home
from roundhouse.build.pipeline import build
from roundhouse.build.recipe import recipe_from
from roundhouse.serve.deployment import Deployment, Endpoints, Ports
from roundhouse.serve.openai.api_keys import ApiKeys
from roundhouse.serve.openai.tools import form_of_template

KEY = "only-this-one"
PROMPT = "The roundhouse stood at the end of the line, where engines were turned, inspected and sent out again. " * 2
MESSAGES: list[Any] = [{"role": "user", "content": "Rain?"}]
CITY = {
    "type": "object",
    "properties": {"city": {"$ref": "#/$defs/City"}, "days": {"type": "integer", "minimum": 1, "maximum": 3}},
    "required": ["city", "days"],
    "additionalProperties": False,
    "$defs": {"City": {"enum": ["Oslo", "Rome"]}},
}
UNKNOWN_FORM = "{#- <function= -#}" + HERMES_TEMPLATE
"""Calls as Hermes writes them, with a word of another form in it."""
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "weather", "parameters": CITY}},
    {"type": "function", "function": {"name": "ping"}},
]


@pytest.fixture(scope="module")
def at(tiny_model: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    """Where a tiny engine answers those who have the key: its template does not tell how it writes calls, so that is named."""
    folder = tmp_path_factory.mktemp("with tools")
    shutil.copytree(tiny_model("llama"), folder / "model")
    (folder / "model" / "chat_template.jinja").write_text(UNKNOWN_FORM)
    home = Home(folder / "home")
    keys = {"weights": "bf16", "kv_cache": "bf16", "max_batch_size": 8, "max_seq_len": 512}  # the quickest to build
    recipe = recipe_from({"model": str(folder / "model"), "name": "tiny", **keys})
    engine = build(recipe, home, lambda event: None).engine
    ports = Ports(http=0, grpc=0, metrics=0, openai=0)
    with Deployment([engine], home, ports=ports, api_keys=ApiKeys([KEY]), tool_form="hermes") as deployment:
        yield deployment.endpoints


@pytest.fixture
def client(at: Endpoints) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=at.openai, api_key=KEY, max_retries=0) as client:
        yield client


def test_who_has_no_key_is_sent_away(at: Endpoints) -> None:
    with (
        openai.OpenAI(base_url=at.openai, api_key="another", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.models.list()


def test_the_form_of_tool_calls_that_was_named_is_used(client: openai.OpenAI) -> None:
    assert form_of_template(UNKNOWN_FORM) is None
    (model,) = client.models.list().data
    assert (model.model_extra or {})["tools"] == "hermes"


def test_several_prompts_and_answers_with_log_probabilities(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "tiny", "prompt": ["One engine", "Two engines"], "n": 2, "max_tokens": 6, "seed": 7}
    whole = client.completions.create(**asked, logprobs=2)
    assert [choice.index for choice in whole.choices] == [0, 1, 2, 3]
    for choice in whole.choices:
        assert choice.logprobs is not None
        assert choice.logprobs.top_logprobs is not None
        assert [len(top) for top in choice.logprobs.top_logprobs] == [2] * len(choice.logprobs.tokens or [])
    texts = dict.fromkeys(range(4), "")
    for chunk in client.completions.create(**asked, stream=True):
        for part in chunk.choices:
            texts[part.index] += part.text
    assert texts == {choice.index: choice.text for choice in whole.choices}


def test_the_tokens_of_log_probabilities_are_the_text(client: openai.OpenAI) -> None:
    choice = client.chat.completions.create(
        model="tiny", messages=MESSAGES, max_tokens=12, temperature=0, logprobs=True, extra_body={"ignore_eos": True}
    ).choices[0]
    assert choice.logprobs is not None
    spelled = b"".join(bytes(entry.bytes or []) for entry in choice.logprobs.content or []).decode(errors="replace")
    assert re.sub("<(bos|eos|pad)>", "", spelled) == choice.message.content  # special tokens have no text


def test_a_prompt_that_was_seen_is_not_computed_again(client: openai.OpenAI) -> None:
    def cached(salt: str) -> int:
        usage = client.completions.create(model="tiny", prompt=PROMPT, max_tokens=2, extra_body={"cache_salt": salt}).usage
        assert usage is not None
        assert usage.prompt_tokens_details is not None
        return usage.prompt_tokens_details.cached_tokens or 0

    assert cached("a") == 0
    assert cached("a") > 0
    assert cached("b") == 0


def test_an_answer_follows_its_schema(client: openai.OpenAI) -> None:
    named = {"name": "city", "strict": True, "schema": CITY}
    answer = client.chat.completions.create(
        model="tiny", messages=MESSAGES, response_format={"type": "json_schema", "json_schema": named}, seed=1, max_tokens=100
    )
    found = json.loads(answer.choices[0].message.content or "")
    assert found["city"] in ("Oslo", "Rome")
    assert 1 <= found["days"] <= 3
    shaped = client.completions.create(model="tiny", prompt="a", max_tokens=20, extra_body={"guided_regex": "(ab){3}"})
    assert shaped.choices[0].text == "ababab"


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_must_be_made_is_made(client: openai.OpenAI, stream: bool) -> None:
    asked: dict[str, Any] = {"model": "tiny", "messages": MESSAGES, "tools": TOOLS, "seed": 3, "max_tokens": 120}
    named = {"type": "function", "function": {"name": "weather"}}
    if stream:
        with client.chat.completions.stream(**asked, tool_choice=named) as events:
            choice: Any = events.get_final_completion().choices[0]
    else:
        choice = client.chat.completions.create(**asked, tool_choice=named).choices[0]
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments)["city"] in ("Oslo", "Rome")


def test_impossible_requests_name_their_field(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="the prompt has") as caught:
        client.completions.create(model="tiny", prompt="word " * 600)
    assert caught.value.param == "prompt"
    broken: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"$ref": "#/$defs/nothing"}}}
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="tiny", messages=MESSAGES, response_format=broken)
    hurried = {"deadline_s": 0.001, "ignore_eos": True}
    with pytest.raises(openai.APIStatusError) as late:
        client.completions.create(model="tiny", prompt="a", max_tokens=200, extra_body=hurried)
    assert (late.value.status_code, late.value.code) == (408, "timeout")
