"""The form of Kimi K2: a section of calls, each with an id of the model's own and JSON arguments.

``<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>
<|tool_calls_section_end|>``. The id is passed on, because the model wants to see it again in the next turn.
"""

from __future__ import annotations

import re

from .form import CallParser, ToolForm, ToolSchemas
from .markers import split_at

__all__ = ["KIMI"]

_SECTION_BEGIN, _SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_BEGIN, _ARGUMENTS, _END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
_MARKERS = (_SECTION_BEGIN, _SECTION_END, _BEGIN, _ARGUMENTS, _END)
_HEADER = re.compile(r"\s*((?:functions\.)?([\w.-]{1,128}):\d{1,9})\s*")
_HEADER_SO_FAR = re.compile(r"\s*[\w.:-]{0,160}\s*")


class _KimiParser(CallParser):
    """``_pending`` is what has been read of markers that no call has followed yet: text, if none does."""

    def __init__(self, tools: ToolSchemas) -> None:
        super().__init__()
        self._pending = ""
        self._in_section = False
        self._arguments_space, self._has_arguments = "", False
        self._read_on = self._read_text

    def _step(self) -> bool:
        return self._read_on()

    def _read_text(self) -> bool:
        text, marker, self._buffer = split_at(self._buffer, _MARKERS, ended=self._ended)
        if text.strip():
            self._give_up()
            self._say(text)
        else:
            self._pending += text
        if marker is None:
            return False
        if marker == _SECTION_END and self._in_section and not self._pending.strip():
            self._in_section, self._pending = False, ""
            return True
        if marker == _SECTION_BEGIN:
            self._give_up()
        self._pending += marker
        if marker == _BEGIN:
            self._read_on = self._read_header
        elif marker != _SECTION_BEGIN:
            self._give_up()
        return True

    def _read_header(self) -> bool:
        header, marker, rest = split_at(self._buffer, _MARKERS, ended=self._ended)
        found = _HEADER.fullmatch(header)
        if marker == _ARGUMENTS and found:
            self._pending, self._buffer = "", rest
            self._begin(found[2], found[1])
            self._in_section = True
            self._arguments_space, self._has_arguments = "", False
            self._read_on = self._read_arguments
            return True
        if marker is None and not self._ended and _HEADER_SO_FAR.fullmatch(header):
            return False
        self._read_on = self._read_text
        self._give_up()
        return True

    def _read_arguments(self) -> bool:
        arguments, marker, rest = split_at(self._buffer, (_END, _BEGIN, _SECTION_END), ended=self._ended)
        said = (self._arguments_space + arguments).rstrip()
        self._arguments_space = (self._arguments_space + arguments)[len(said) :]
        if not self._has_arguments:
            said = said.lstrip()
        self._has_arguments = self._has_arguments or bool(said)
        self._argue(said)
        if marker is None:
            self._buffer = rest
            return False
        if not self._has_arguments:
            self._argue("{}")
        self._buffer = rest if marker == _END else marker + rest
        self._read_on = self._read_text
        return True

    def _give_up(self) -> None:
        self._say(self._pending)
        self._pending = ""

    def _close(self) -> None:
        self._give_up()


KIMI = ToolForm("kimi", _KimiParser, markers=_MARKERS)
