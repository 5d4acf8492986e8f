"""Texts of answers whose tool-call markers the tokenizer calls special."""

from __future__ import annotations

from typing import Any

import pytest

from roundhouse.serve.openai.tools.marked_text import MarkedTokenizer
from roundhouse.serve.openai.triton_client import Piece

MARKERS = ("<tool_call>", "</tool_call>")
TEXT = '<tool_call>{"name": "é"}</tool_call>'


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Any) -> Any:
    from transformers import AutoTokenizer

    found = AutoTokenizer.from_pretrained(tiny_model("llama"))
    found.add_tokens(list(MARKERS), special_tokens=True)
    return found


def piece(token_ids: list[int], finish_reason: str | None = None, stop_reason: str | None = None) -> Piece:
    return Piece(0, "", finish_reason, stop_reason, 1, 0, 1, tuple(token_ids), None)


def shown(tokenizer: Any, text: str, *, ending: int | None = None, stop: tuple[str, ...] = ()) -> str:
    """A text, token by token, as the engine would send it, which ends with a token or by its length."""
    marked = MarkedTokenizer.showing(tokenizer.backend_tokenizer, MARKERS)
    assert marked is not None
    stream = marked.text(stop)
    found = "".join(stream.push(piece([token])) for token in tokenizer.encode(text, add_special_tokens=False))
    last = piece([], "length") if ending is None else piece([ending], "stop", str(ending))
    return found + stream.push(last)


def test_markers_are_shown_and_other_special_tokens_are_not(tokenizer: Any) -> None:
    assert tokenizer.decode(tokenizer.encode(TEXT), skip_special_tokens=True) == '{"name": "é"}'
    assert shown(tokenizer, f"a<bos>{TEXT}<eos>") == f"a{TEXT}"


def test_the_token_that_ended_the_answer_is_not_shown(tokenizer: Any) -> None:
    close = tokenizer.convert_tokens_to_ids("</tool_call>")
    assert shown(tokenizer, TEXT.removesuffix("</tool_call>"), ending=close) == TEXT.removesuffix("</tool_call>")


def test_stop_strings_end_the_text_before_them(tokenizer: Any) -> None:
    assert shown(tokenizer, TEXT, stop=("name",)) == '<tool_call>{"'


def test_the_models_own_tokenizer_stays_as_it_is(tokenizer: Any) -> None:
    MarkedTokenizer.showing(tokenizer.backend_tokenizer, MARKERS)
    assert tokenizer.decode(tokenizer.encode(TEXT), skip_special_tokens=True) == '{"name": "é"}'


def test_nothing_is_done_where_markers_are_ordinary_tokens(tiny_model: Any) -> None:
    from transformers import AutoTokenizer

    plain = AutoTokenizer.from_pretrained(tiny_model("llama"))
    plain.add_tokens(list(MARKERS))
    assert MarkedTokenizer.showing(plain.backend_tokenizer, MARKERS) is None
