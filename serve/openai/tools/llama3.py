"""The form of Llama 3.1, 3.2 and 3.3: the answer is ``{"name": …, "parameters": {…}}``, or several with ``;`` between.

``<|python_tag|>`` may stand before a call. It is a special token, which models also write before Python code for tools of
their own: that stays text.
"""

from __future__ import annotations

from .bare_json import BareJsonParser
from .form import CallParser, ToolForm, ToolSchemas

__all__ = ["LLAMA3"]

_TAG = "<|python_tag|>"


def _parser(tools: ToolSchemas) -> CallParser:
    return BareJsonParser(tools, ("parameters", "arguments"), marker=_TAG, separator=";")


LLAMA3 = ToolForm("llama3", _parser, markers=(_TAG,), opening="", arguments_key="parameters")
