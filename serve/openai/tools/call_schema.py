"""Schemas of answers that are calls, for the engine to hold an answer to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...engine.request import Guide
from .form import ToolSchemas

__all__ = ["call_guide"]


def call_guide(tools: ToolSchemas, arguments_key: str, *, or_answer: Mapping[str, Any] | None = None) -> Guide:
    """An answer is one object that calls one of these tools.

    Args:
        tools: what may be called; at least one.
        arguments_key: the member of the object that holds the arguments.
        or_answer: the schema of an answer that may stand there instead.
    """
    parts = {f"tool{number}": schema for number, schema in enumerate(tools.values())}
    choices = [
        {
            "type": "object",
            "properties": {"name": {"const": name}, arguments_key: {"$ref": f"#/$defs/{part}"}},
            "required": ["name", arguments_key],
            "additionalProperties": False,
        }
        for name, part in zip(tools, parts, strict=True)
    ]
    if or_answer is not None:
        parts["answer"] = or_answer
        choices.append({"$ref": "#/$defs/answer"})
    schema = choices[0] if len(choices) == 1 else {"anyOf": choices}
    definitions = {part: _moved(body, f"#/$defs/{part}") for part, body in parts.items()}
    return Guide(kind="json_schema", text=json.dumps({**schema, "$defs": definitions}))


def _moved(schema: object, root: str) -> object:
    """A schema whose references within itself are right when it stands at ``root``."""
    if isinstance(schema, Mapping):
        return {
            key: root + value[1:] if key == "$ref" and isinstance(value, str) and value.startswith("#") else _moved(value, root)
            for key, value in schema.items()
        }
    return [_moved(each, root) for each in schema] if isinstance(schema, list) else schema
