"""Answers that are calls: bare JSON objects, from the first character of the answer on."""

from __future__ import annotations

from .form import CallParser, ToolSchemas
from .json_call import JsonCall
from .markers import could_begin, split_at

__all__ = ["BareJsonParser"]


class BareJsonParser(CallParser):
    """Nothing marks such a call, so only an object with a known tool's name is one: any other JSON is an answer.

    Args:
        tools: what may be called.
        arguments_keys: members that may hold the arguments.
        marker: what a model may write before a call; after it one may stand anywhere in the text.
        separator: what may stand between calls.
    """

    def __init__(
        self, tools: ToolSchemas, arguments_keys: tuple[str, ...], *, marker: str | None = None, separator: str | None = None
    ) -> None:
        super().__init__()
        self._tools = tools
        self._keys = arguments_keys
        self._markers = [marker] if marker else []
        self._separators = [separator] if separator else []
        self._skipped = ""
        self._call: JsonCall | None = None
        self._may_call = True

    def _step(self) -> bool:
        if self._call is not None:
            return self._read_call(self._call)
        if self._may_call:
            return self._look_for_call()
        if not self._markers:
            self._say(self._buffer)
            self._buffer = ""
            return False
        text, marker, self._buffer = split_at(self._buffer, self._markers, ended=self._ended)
        self._say(text)
        if marker is not None:
            self._skipped, self._may_call = marker, True
        return marker is not None

    def _look_for_call(self) -> bool:
        """Past white space, a marker or a separator; all of it stays text when no call comes."""
        rest = self._buffer.lstrip()
        self._skip(len(self._buffer) - len(rest))
        if not rest:
            return False
        if rest.startswith("{"):
            self._call = JsonCall(self._keys, self._tools.__contains__)
            return True
        for word in [*self._markers, *(self._separators if self._calls else [])]:
            if rest.startswith(word):
                self._skip(len(word))
                return True
            if could_begin(rest, word) and not self._ended:
                return False
        self._give_up()
        return True

    def _skip(self, length: int) -> None:
        self._skipped += self._buffer[:length]
        self._buffer = self._buffer[length:]

    def _give_up(self) -> None:
        self._may_call = False
        self._say(self._skipped)
        self._skipped = ""

    def _read_call(self, call: JsonCall) -> bool:
        begun = call.begun
        fragment, self._buffer = call.feed(self._buffer)
        if begun is None and call.begun is not None:
            self._skipped = ""
            self._begin(call.begun)
        self._argue(fragment)
        if call.state == "reading":
            return False
        self._call = None
        if call.state == "broken":
            self._give_up()
            self._say(call.unclaimed)
        return True

    def _close(self) -> None:
        self._give_up()
        if self._call is not None:
            self._say(self._call.unclaimed)
