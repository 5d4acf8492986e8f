"""A front with one model, whose generator follows a script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from fronts import HERMES_TEMPLATE, Script, serving, template_of

from roundhouse.serve.openai.chat import ChatTemplate


@pytest.fixture(scope="session")
def hermes(tiny_model) -> ChatTemplate:
    """A tiny tokenizer whose chat template writes tool calls as Hermes and Qwen do."""
    return template_of(tiny_model("llama"), HERMES_TEMPLATE)


@pytest.fixture(scope="session")
def tokenizer(tiny_model) -> Any:
    """The tokenizer behind it."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_model("llama"))


@pytest.fixture(scope="session")
def front(hermes: ChatTemplate) -> Iterator[tuple[str, Script]]:
    """The address of a front that all tests share, and its script."""
    script = Script()
    with serving({"m": (hermes, script)}) as url:
        yield url, script


@pytest.fixture
def script(front: tuple[str, Script]) -> Script:
    """What the model answers in this test."""
    front[1].reset()
    return front[1]


@pytest.fixture
def base_url(front: tuple[str, Script], script: Script) -> str:
    return front[0]


@pytest.fixture(scope="session")
def http(front: tuple[str, Script]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=front[0], trust_env=False, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def client(front: tuple[str, Script]) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=front[0], api_key="none", max_retries=0) as client:
        yield client
