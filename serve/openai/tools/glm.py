"""The form of GLM 4.5 and later: a name, then keys and values in tags of their own.

``<tool_call>NAME<arg_key>K</arg_key><arg_value>V</arg_value>…</tool_call>``. A string stands there as it is, anything else
as JSON; which of them is meant is for the tool's schema to say. A call is handed out when it is complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from .form import CallParser, ToolForm, ToolSchemas
from .json_call import json_value
from .markers import could_begin, split_at

__all__ = ["GLM"]

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_KEY, _KEY_END = "<arg_key>", "</arg_key>"
_VALUE, _VALUE_END = "<arg_value>", "</arg_value>"
_NAME = re.compile(r"\s*([\w.-]{1,128})\s*")
_NAME_SO_FAR = re.compile(r"\s*[\w.-]{0,128}\s*")
_KINDS: Mapping[type, tuple[str, ...]] = {
    str: ("string",),
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    list: ("array",),
    dict: ("object",),
    type(None): ("null",),
}


class _GlmParser(CallParser):
    """``_raw`` is what has been read of a call: text, if it turns out to be none."""

    def __init__(self, tools: ToolSchemas) -> None:
        super().__init__()
        self._tools = tools
        self._raw = ""
        self._name = ""
        self._key = ""
        self._arguments: dict[str, str] = {}
        self._read_on: Callable[[], bool] = self._read_text

    def _step(self) -> bool:
        return self._read_on()

    def _read_text(self) -> bool:
        text, marker, self._buffer = split_at(self._buffer, [_OPEN], ended=self._ended)
        self._say(text)
        if marker is None:
            return False
        self._raw, self._arguments = marker, {}
        return self._go_on(self._read_name)

    def _read_name(self) -> bool:
        name, marker, _ = split_at(self._buffer, (_KEY, _CLOSE), ended=self._ended)
        found = _NAME.fullmatch(name)
        if marker is not None and found:
            self._name = found[1]
            return self._go_on(self._read_member, len(name))
        if marker is None and not self._ended and _NAME_SO_FAR.fullmatch(name):
            return False
        return self._give_up()

    def _read_member(self) -> bool:
        """A key, or the end of the call."""
        if self._next_is(_CLOSE):
            self._take(len(_CLOSE))
            self._call()
            return self._go_on(self._read_text)
        if self._next_is(_KEY):
            key, marker, _ = split_at(self._buffer[len(_KEY) :], [_KEY_END], ended=self._ended)
            if "<" in key or (marker is None and self._ended):
                return self._give_up()
            if marker is None:
                return False
            self._key = key.strip()
            if self._key in self._arguments:
                return self._give_up()
            return self._go_on(self._read_value, len(_KEY + key + _KEY_END))
        return self._wait_for(_CLOSE, _KEY)

    def _read_value(self) -> bool:
        if not self._next_is(_VALUE):
            return self._wait_for(_VALUE)
        end = self._buffer.find(_VALUE_END)
        if end < 0:
            return self._ended and self._give_up()
        self._arguments[self._key] = self._buffer[len(_VALUE) : end]
        return self._go_on(self._read_member, end + len(_VALUE_END))

    def _next_is(self, marker: str) -> bool:
        self._take(len(self._buffer) - len(self._buffer.lstrip()))
        return self._buffer.startswith(marker)

    def _wait_for(self, *markers: str) -> bool:
        if not self._ended and any(could_begin(self._buffer, marker) for marker in markers):
            return False
        return self._give_up()

    def _take(self, length: int) -> None:
        self._raw += self._buffer[:length]
        self._buffer = self._buffer[length:]

    def _go_on(self, reader: Callable[[], bool], taken: int = 0) -> bool:
        self._take(taken)
        self._read_on = reader
        return True

    def _give_up(self) -> bool:
        self._say(self._raw)
        return self._go_on(self._read_text)

    def _call(self) -> None:
        types = _types_of(self._tools.get(self._name, {}))
        self._begin(self._name)
        self._argue("{")
        for number, (key, value) in enumerate(self._arguments.items()):
            comma = ", " if number else ""
            self._argue(f"{comma}{_quoted(key)}: {_json_of(value, types.get(key, frozenset()))}")
        self._argue("}")

    def _close(self) -> None:
        if self._read_on == self._read_member:  # whole, but for its end marker
            self._call()
        elif self._read_on != self._read_text:
            self._say(self._raw)


def _types_of(schema: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """The JSON types that the schema of an object allows for each property; empty where it does not say."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {str(key): frozenset(_declared(value)) for key, value in properties.items()}


def _declared(schema: object) -> list[str]:
    if not isinstance(schema, Mapping):
        return []
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list):
        return [str(each) for each in kind]
    members = schema.get("anyOf") or schema.get("oneOf") or []
    if isinstance(members, list):
        return [each for member in members for each in _declared(member)]
    return []


def _json_of(value: str, types: frozenset[str]) -> str:
    """A value as JSON: what it spells where that is a type that may stand here, else the string that it is."""
    text = value.strip()
    found = json_value(text)
    is_json = found is not None or text == "null"
    if is_json and types != {"string"} and (not types or not types.isdisjoint(_KINDS[type(found)])):
        return text
    return _quoted(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


GLM = ToolForm("glm", _GlmParser, markers=(_OPEN, _CLOSE, _KEY, _KEY_END, _VALUE, _VALUE_END))
