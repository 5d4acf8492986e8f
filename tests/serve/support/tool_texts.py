"""Reading texts with a form's parser, in whatever pieces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from roundhouse.serve.openai.tools import ArgumentsDelta, CallDelta, Delta, TextDelta, ToolForm

TOOLS: dict[str, dict[str, Any]] = {
    "weather": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
    },
    "ping": {},
}
Said = str | tuple[str, str]
"""Text, or a call's name and arguments."""


def read(form: ToolForm, pieces: Iterable[str]) -> list[Said]:
    """What is in a text, in order."""
    parser = form.parser(TOOLS)
    deltas = [delta for piece in pieces for delta in parser.push(piece)]
    return joined([*deltas, *parser.finish()])


def joined(deltas: Iterable[Delta]) -> list[Said]:
    """Deltas with neighbours joined. Arguments must follow their own call."""
    said: list[Said] = []
    calls = 0
    for delta in deltas:
        match delta:
            case TextDelta(text):
                assert text
                if said and isinstance(said[-1], str):
                    said[-1] += text
                else:
                    said.append(text)
            case CallDelta(index, call_id, name):
                assert index == calls
                assert call_id
                calls += 1
                said.append((name, ""))
            case ArgumentsDelta(index, fragment):
                assert index == calls - 1
                assert fragment
                name, arguments = said[-1]
                said[-1] = (name, arguments + fragment)
    return said
