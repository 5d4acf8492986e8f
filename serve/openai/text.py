"""Strings that are text. JSON can spell halves of surrogate pairs, which no encoding can, and so nothing after this could."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

__all__ = ["Text", "is_text"]


def is_text(value: str) -> bool:
    """Whether a string can be encoded."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _require_text(value: str) -> str:
    if not is_text(value):
        raise ValueError("it holds half of a surrogate pair, which is not text")
    return value


Text = Annotated[str, AfterValidator(_require_text)]
