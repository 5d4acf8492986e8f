"""Tools and the choice among them, as a request states them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from ..json_schema import Schema
from .form import ToolSchemas

__all__ = ["NamedTool", "Tool", "ToolChoice", "schemas_of"]

FunctionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
_NO_PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": False}


class Function(BaseModel):
    """What can be called. ``strict`` says nothing new here: a call that must be made always follows its schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: FunctionName
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None


class Tool(BaseModel):
    """One tool; functions are the only kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["function"]
    function: Function

    def for_template(self) -> dict[str, Any]:
        """The tool as chat templates expect it."""
        return self.model_dump(exclude_unset=True)


class FunctionReference(BaseModel):
    """A function by its name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: FunctionName


class NamedTool(BaseModel):
    """The choice of one tool."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["function"]
    function: FunctionReference


def _form_of_choice(value: object) -> str:
    return "function" if isinstance(value, dict | NamedTool) else "word"


ToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("word")] | Annotated[NamedTool, Tag("function")],
    Discriminator(_form_of_choice),
]


def schemas_of(tools: list[Tool]) -> ToolSchemas:
    """The schema of each tool's parameters."""
    return {tool.function.name: tool.function.parameters or _NO_PARAMETERS for tool in tools}
