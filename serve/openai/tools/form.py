"""The contract of tool calls in text: what a parser says, what it is, and what a form of calls consists of.

A model writes calls into its text, each family in its own form. A parser takes the text in pieces, as they come, and
says what is text for the user and what is a call. However the text is cut, the joined deltas are the same.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ArgumentsDelta", "CallDelta", "CallParser", "Delta", "TextDelta", "ToolForm", "ToolSchemas"]

ToolSchemas = Mapping[str, Mapping[str, Any]]
"""The tools of a request: the JSON schema of each one's parameters, by its name."""


@dataclass(frozen=True)
class TextDelta:
    """Text for the user."""

    text: str


@dataclass(frozen=True)
class CallDelta:
    """A call begins. ``index`` counts the calls of an answer."""

    index: int
    id: str
    name: str


@dataclass(frozen=True)
class ArgumentsDelta:
    """A fragment of a call's arguments; joined, they are JSON, unless the model made a mistake or was cut off."""

    index: int
    fragment: str


Delta = TextDelta | CallDelta | ArgumentsDelta


class CallParser(ABC):
    """Reads one answer. A form's parser says what it finds with ``_say``, ``_begin`` and ``_argue``.

    What only looks like a call stays text, and so nothing is lost. Once a call's name and the beginning of its arguments
    are there it is one: what is wrong with its arguments after that is for the caller to see. White space beside a call
    belongs to the form, not to the text.
    """

    def __init__(self) -> None:
        self._buffer = ""
        self._ended = False
        self._calls = 0
        self._ids: set[str] = set()
        self._space = ""
        self._beside_call = False
        self._deltas: list[Delta] = []

    def push(self, text: str) -> list[Delta]:
        """Take a piece of text; returns what is certain now."""
        self._buffer += text
        return self._read()

    def finish(self) -> list[Delta]:
        """The text has ended: returns the rest."""
        self._ended = True
        deltas = self._read()
        if self._space and not self._beside_call:
            deltas.append(TextDelta(self._space))
        return deltas

    @abstractmethod
    def _step(self) -> bool:
        """Consume some of ``_buffer``; False when more text is needed, which at the end never is."""

    def _read(self) -> list[Delta]:
        while self._buffer and self._step():
            pass
        if self._ended:
            self._close()
        deltas, self._deltas = self._deltas, []
        return deltas

    @abstractmethod
    def _close(self) -> None:
        """The text has ended inside whatever is being read."""

    def _say(self, text: str) -> None:
        text = self._space + text
        if self._beside_call:
            text = text.lstrip()
        said = text.rstrip()
        self._space = text[len(said) :]
        if said:
            self._beside_call = False
            self._deltas.append(TextDelta(said))

    def _begin(self, name: str, call_id: str | None = None) -> None:
        if call_id is None or call_id in self._ids:
            call_id = f"call_{uuid.uuid4().hex[:24]}"
        self._ids.add(call_id)
        self._space = ""
        self._beside_call = True
        self._deltas.append(CallDelta(self._calls, call_id, name))
        self._calls += 1

    def _argue(self, fragment: str) -> None:
        if fragment:
            self._deltas.append(ArgumentsDelta(self._calls - 1, fragment))


@dataclass(frozen=True)
class ToolForm:
    """How a family of models writes calls.

    ``markers`` are what a parser needs to see even where the tokenizer calls them special, which are left out of text.
    ``opening`` is what stands before a call that is one JSON object with ``name`` and ``arguments_key``: a call that must
    be made is begun with it. It is None where calls are no such object; a call that must be made is then a bare one.
    """

    name: str
    parser: Callable[[ToolSchemas], CallParser]
    markers: tuple[str, ...]
    opening: str | None = None
    arguments_key: str = "arguments"
