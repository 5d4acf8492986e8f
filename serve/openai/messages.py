"""Messages of a conversation, as requests state them and as chat templates take them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

__all__ = ["ChatMessage", "ToolCall"]

_EMPTY_FIELDS = ("refusal", "annotations", "audio", "function_call")
"""Fields of OpenAI's own answers, which clients send back with the history. They must be empty."""


class CalledFunction(BaseModel):
    """What an earlier answer called."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    arguments: str


class ToolCall(BaseModel):
    """A call in an earlier answer."""

    model_config = ConfigDict(frozen=True, extra="ignore")  # some clients send the index of a streamed call back

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction

    def for_template(self) -> dict[str, Any]:
        """The call as chat templates expect it: arguments as an object, which most of them write as JSON themselves."""
        function = {"name": self.function.name, "arguments": _object_or_text(self.function.arguments)}
        return {"id": self.id, "type": self.type, "function": function}


class ChatMessage(BaseModel):
    """One turn of a conversation. Content in parts is joined; only parts of text are understood."""

    model_config = ConfigDict(frozen=True, extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    @field_validator("content", mode="before")
    @classmethod
    def _join_parts(cls, content: object) -> object:
        if not isinstance(content, list):
            return content
        return "".join(_text_of(part, number) for number, part in enumerate(content))

    @model_validator(mode="after")
    def _fits_role(self) -> Self:
        unknown = [name for name, value in (self.model_extra or {}).items() if value or name not in _EMPTY_FIELDS]
        if unknown:
            raise ValueError(f"not supported in a message: {', '.join(sorted(unknown))}")
        if self.tool_calls and self.role != "assistant":
            raise ValueError(f"tool_calls belong to the assistant, not to {self.role}")
        if self.content is None and self.role != "assistant":
            raise ValueError(f"a message of {self.role} needs content")
        if self.role == "tool" and self.tool_call_id is None:
            raise ValueError("a message of tool needs the tool_call_id that it answers")
        return self

    def for_template(self, *, developer: bool = False) -> dict[str, Any]:
        """The message as chat templates expect it.

        Args:
            developer: whether the template knows that role; to others a developer is the system.
        """
        role = "system" if self.role == "developer" and not developer else self.role
        message: dict[str, Any] = {"role": role, "content": self.content or ""}
        if self.name:
            message["name"] = self.name
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        if self.tool_calls:
            message["tool_calls"] = [call.for_template() for call in self.tool_calls]
        return message


def _text_of(part: object, number: int) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    text = part.get("text") if isinstance(part, Mapping) else None
    if kind != "text":
        raise ValueError(f"content part {number} is of type {kind!r}; only text is understood here")
    if not isinstance(text, str):
        raise ValueError(f"content part {number} has no text")
    return text


def _object_or_text(arguments: str) -> object:
    """The object that arguments are, or the text itself: models make mistakes, and these are part of the history."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments
