"""What a child tells its worker: events in its output, each on a line behind a record separator; other lines are its log."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

__all__ = ["Ended", "Event", "Progress", "StageBegan", "StageEnded", "as_line", "plain_text", "plain_value", "read_line"]

_SEPARATOR = "\x1e"
_STYLES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_HALVES = re.compile(r"[\ud800-\udfff]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StageBegan(_Event):
    """A part of the work began, and the one before has ended."""

    event: Literal["stage_began"] = "stage_began"
    name: str
    what: str


class StageEnded(_Event):
    """The part that was under way has ended."""

    event: Literal["stage_ended"] = "stage_ended"
    result: str | None = None
    """What came of it, in words."""


class Progress(_Event):
    """How much of a part is done, from 0 to 1."""

    event: Literal["progress"] = "progress"
    name: str
    done: float


class Ended(_Event):
    """The work is over. Nothing comes after it."""

    event: Literal["ended"] = "ended"
    result: dict[str, Any] | None = None
    error: str | None = None
    """Why it failed; None when it did not."""
    hint: str | None = None


Event = StageBegan | StageEnded | Progress | Ended
_events: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def as_line(event: Event) -> str:
    """The line that says it, in plain text. Numbers in it that are not finite become null: no database takes them."""
    return f"{_SEPARATOR}{type(event).model_validate(plain_value(event.model_dump())).model_dump_json()}\n"


def read_line(line: str) -> tuple[str | None, Event | None]:
    """A line of output: what of it is log, and the event in it. Somebody else may have begun the line."""
    text, separator, record = line.partition(_SEPARATOR)
    if not separator:
        return line, None
    try:
        return text or None, _events.validate_json(record)
    except ValidationError:
        return line, None


def plain_text(text: str) -> str:
    """Text without colours, control characters and lone halves of characters, which neither pages nor databases can take."""
    return _HALVES.sub("\N{REPLACEMENT CHARACTER}", _CONTROLS.sub("", _STYLES.sub("", text)))


def plain_value(value: Any) -> Any:
    """Any value, with plain text wherever in it there is text."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, dict):
        return {plain_value(key): plain_value(each) for key, each in value.items()}
    return [plain_value(each) for each in value] if isinstance(value, list | tuple) else value
