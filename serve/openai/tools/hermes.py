"""The form of Hermes and Qwen: ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, any number, anywhere in the text."""

from __future__ import annotations

from .form import CallParser, ToolForm, ToolSchemas
from .json_call import JsonCall
from .markers import could_begin, split_at

__all__ = ["HERMES"]

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_ARGUMENTS = "arguments"


class _HermesParser(CallParser):
    """The end marker may be missing: models leave it out at the end of an answer.

    A name is passed on, known or not: an agent can tell the model that there is no such tool, which it could not if the
    call had become text.
    """

    def __init__(self, tools: ToolSchemas) -> None:
        super().__init__()
        self._call: JsonCall | None = None
        self._awaits_end = False

    def _step(self) -> bool:
        if self._call is not None:
            return self._read_call(self._call)
        if self._awaits_end:
            return self._skip_end()
        text, marker, self._buffer = split_at(self._buffer, [_OPEN], ended=self._ended)
        self._say(text)
        if marker is None:
            return False
        self._call = JsonCall((_ARGUMENTS,), _any_name)
        return True

    def _read_call(self, call: JsonCall) -> bool:
        begun = call.begun
        fragment, self._buffer = call.feed(self._buffer)
        if begun is None and call.begun is not None:
            self._begin(call.begun)
        self._argue(fragment)
        if call.state == "reading":
            return False
        self._call = None
        self._awaits_end = call.state == "complete"
        if call.begun is None:
            self._say(_OPEN)
        self._say(call.unclaimed if call.state == "broken" else "")
        return True

    def _skip_end(self) -> bool:
        rest = self._buffer.lstrip()
        if could_begin(rest, _CLOSE) and len(rest) < len(_CLOSE) and not self._ended:
            return False
        self._awaits_end = False
        self._buffer = rest.removeprefix(_CLOSE)
        return True

    def _close(self) -> None:
        if self._call is not None:
            self._say((_OPEN if self._call.begun is None else "") + self._call.unclaimed)


def _any_name(_: str) -> bool:
    return True


HERMES = ToolForm("hermes", _HermesParser, markers=(_OPEN, _CLOSE), opening=f"{_OPEN}\n", arguments_key=_ARGUMENTS)
