"""What the text of an answer must look like: ``response_format``, and what the engine is told about it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..engine.request import Guide
from .json_schema import Schema

__all__ = ["ResponseFormat", "guide_of", "schema_of"]


class TextFormat(BaseModel):
    """Any text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["text"]


class JsonObjectFormat(BaseModel):
    """Any JSON object."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["json_object"]


class JsonSchema(BaseModel):
    """A named schema. Answers follow it whatever ``strict`` says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str | None = None
    body: Schema = Field(alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(BaseModel):
    """JSON of a schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["json_schema"]
    json_schema: JsonSchema


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Field(discriminator="type")]


def guide_of(given: TextFormat | JsonObjectFormat | JsonSchemaFormat | None) -> Guide | None:
    """What the engine is to hold the text to, or None when it is free."""
    if isinstance(given, JsonObjectFormat):
        return Guide(kind="json_object")
    if isinstance(given, JsonSchemaFormat):
        return Guide(kind="json_schema", text=json.dumps(given.json_schema.body))
    return None


def schema_of(given: TextFormat | JsonObjectFormat | JsonSchemaFormat | None) -> dict[str, Any] | None:
    """The same as a schema, to be combined with others; None when the text is free."""
    if isinstance(given, JsonObjectFormat):
        return {"type": "object"}
    return given.json_schema.body if isinstance(given, JsonSchemaFormat) else None
