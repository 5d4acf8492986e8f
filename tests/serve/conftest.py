"""Fixtures of the tests of the engine loop and its runtimes."""

from __future__ import annotations

import pytest

from roundhouse.serve.engine.tokenizer import EngineTokenizer, load_tokenizer


@pytest.fixture(scope="session")
def tokenizer(tiny_model) -> EngineTokenizer:
    """The byte-level tokenizer of the tiny models."""
    return load_tokenizer(tiny_model("llama"))
