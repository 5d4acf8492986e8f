"""Fields that a request may state in several forms.

The form is found first, by looking at the value, so that an error is about that form and not about all the others.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Discriminator, Field, Tag

from .text import Text

__all__ = ["MOST_ANSWERS", "Prompt", "Prompts", "StopStrings", "TokenId"]

MOST_ANSWERS = 128
"""Answers of one request, over all of its prompts: each is a stream of its own to Triton, or a row of the batch."""

TokenId = Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)]
Prompt = Text | list[TokenId]
_Several = Field(min_length=1, max_length=MOST_ANSWERS)


def _form_of_prompt(value: object) -> str | None:
    if isinstance(value, str):
        return "text"
    if not isinstance(value, list):
        return None
    first = value[0] if value else 0
    return "texts" if isinstance(first, str) else "lists" if isinstance(first, list) else "ids"


Prompts = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[list[TokenId], Tag("ids")]
    | Annotated[list[Text], _Several, Tag("texts")]
    | Annotated[list[list[TokenId]], _Several, Tag("lists")],
    Discriminator(
        _form_of_prompt,
        custom_error_type="prompt_form",
        custom_error_message="it must be a text, a list of token ids, or a list of several of one of them",
    ),
]


def _require_characters(value: str) -> str:
    if not value:
        raise ValueError("an empty stop string is not allowed")
    return value


def _form_of_stop(value: object) -> str | None:
    return "text" if isinstance(value, str) else "texts" if isinstance(value, list) else None


_StopString = Annotated[Text, AfterValidator(_require_characters)]
StopStrings = Annotated[
    Annotated[_StopString, Tag("text")] | Annotated[list[_StopString], Tag("texts")],
    Discriminator(
        _form_of_stop, custom_error_type="stop_form", custom_error_message="it must be a string or a list of strings"
    ),
]
