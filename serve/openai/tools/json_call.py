"""Reads a call that is one JSON object, ``{"name": …, "arguments": {…}}``, character by character."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from typing import Literal

from ..text import is_text

__all__ = ["JsonCall", "json_value"]

_NAME = re.compile(r"[\w.-]{1,128}")
_SPACE = " \t\r\n"
_IGNORED = ("type", "id")
"""Members beside name and arguments that some models write; they say nothing."""

_Reading = Generator[None, str, None]
_Char = Generator[None, str, str]


class _BrokenError(Exception):
    """What was read is not a call."""


class JsonCall:
    """One call that is being read.

    ``name`` is set, and the call has begun, when its name and the beginning of its arguments have been read. Models put
    the name first; a call whose arguments come first begins when it is complete.

    Args:
        arguments_keys: members that may hold the arguments, an object or, as some models do, an object as a string.
        accepts: whether a name is one that may be called.
    """

    def __init__(self, arguments_keys: tuple[str, ...], accepts: Callable[[str], bool]) -> None:
        self.state: Literal["reading", "complete", "broken"] = "reading"
        self.begun: str | None = None
        """The name of the call, once it has begun."""
        self._keys = arguments_keys
        self._accepts = accepts
        self._name: str | None = None
        self._arguments: str | None = None
        self._raw: list[str] = []
        self._fragment: list[str] = []
        self._sink = self._raw
        self._reader = self._object()
        next(self._reader)

    @property
    def unclaimed(self) -> str:
        """What was read and is no part of a call that has begun."""
        return "".join(self._raw)

    def feed(self, text: str) -> tuple[str, str]:
        """Read on.

        Returns:
            What is new of the arguments; and the rest of the text, which does not belong to the object.
        """
        taken = len(text)
        for position, char in enumerate(text):
            try:
                self._reader.send(char)
            except StopIteration:
                self.state, taken = "complete", position + 1
                break
            except _BrokenError:
                self._raw.pop()
                self.state, taken = "broken", position
                break
        fragment = "".join(self._fragment)
        self._fragment.clear()
        return fragment, text[taken:]

    def _object(self) -> _Reading:
        yield from self._expect("{")
        char = yield from self._visible()
        while char == '"':
            key = yield from self._text()
            yield from self._expect(":")
            yield from self._member(key, (yield from self._visible()))
            char = yield from self._visible()
            if char == ",":
                yield from self._expect('"')
                char = '"'
        if char != "}":
            raise _BrokenError
        if self.begun is None:
            self._begin_whole()

    def _member(self, key: object, first: str) -> _Reading:
        if key in self._keys and self._arguments is None and first in '{"':
            start = len(self._raw) - 1
            if first == '"':
                yield from self._string()
            elif self._name is None:
                yield from self._container()
            else:
                yield from self._stream(start)
            self._arguments = "".join(self._raw[start:])
        elif key == "name" and self._name is None and first == '"':
            name = yield from self._text()
            if not isinstance(name, str) or not _NAME.fullmatch(name) or not self._accepts(name):
                raise _BrokenError
            self._name = name
        elif key in _IGNORED and first == '"':
            yield from self._string()
        else:
            raise _BrokenError

    def _stream(self, start: int) -> _Reading:
        """Read arguments whose name is known: what looks like an object is handed out as it comes."""
        char = yield from self._visible()
        if char not in '"}':
            raise _BrokenError
        self.begun = self._name
        self._fragment += self._raw[start:]
        self._raw.clear()
        if char == '"':
            self._sink = self._fragment
            yield from self._string()
            yield from self._container()
            self._sink = self._raw

    def _begin_whole(self) -> None:
        arguments = "{}" if self._arguments is None else self._arguments
        value = json_value(arguments)
        if isinstance(value, str):  # an object in a string
            arguments, value = value, json_value(value)
        if self._name is None or not isinstance(value, dict) or not is_text(arguments):
            raise _BrokenError
        self.begun = self._name
        self._raw.clear()
        self._fragment.append(arguments)

    def _text(self) -> Generator[None, str, object]:
        """The value of a string whose opening quote was read; None when it is not valid."""
        start = len(self._raw) - 1
        yield from self._string()
        return json_value("".join(self._raw[start:]))

    def _container(self) -> _Reading:
        """The rest of an object or a list that has been opened."""
        depth = 1
        while depth:
            char = yield from self._next()
            if char == '"':
                yield from self._string()
            elif char in "{[":
                depth += 1
            elif char in "}]":
                depth -= 1

    def _string(self) -> _Reading:
        """The rest of a string that has been opened."""
        while (char := (yield from self._next())) != '"':
            if char == "\\":
                yield from self._next()

    def _expect(self, wanted: str) -> _Reading:
        if (yield from self._visible()) != wanted:
            raise _BrokenError

    def _visible(self) -> _Char:
        """The next character that is not white space."""
        while (char := (yield from self._next())) in _SPACE:
            pass
        return char

    def _next(self) -> _Char:
        char = yield
        self._sink.append(char)
        return char


def json_value(text: str) -> object:
    """The value of a JSON text; None also for what is none, or is nested beyond any reason."""
    try:
        value: object = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return value


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
