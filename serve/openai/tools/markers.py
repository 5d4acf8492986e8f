"""Finding markers in text that arrives in pieces."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["could_begin", "split_at"]


def split_at(text: str, markers: Sequence[str], *, ended: bool) -> tuple[str, str | None, str]:
    """Cut a text at the first of some markers.

    Args:
        text: what there is.
        markers: each has its first character only once, so that they never overlap.
        ended: no more text comes.

    Returns:
        The text before; the marker, or None when there is none; the text after it. Without a marker, what is "after" is
        the end of the text that may become one.
    """
    found = [(at, marker) for marker in markers if (at := text.find(marker)) >= 0]
    if found:
        at, marker = min(found)
        return text[:at], marker, text[at + len(marker) :]
    if ended:
        return text, None, ""
    held = max(_overlap(text, marker) for marker in markers)
    return text[: len(text) - held], None, text[len(text) - held :]


def could_begin(text: str, marker: str) -> bool:
    """Whether a text that begins with ``text`` may begin with the marker."""
    return text.startswith(marker) or marker.startswith(text)


def _overlap(text: str, marker: str) -> int:
    """Characters at the end of ``text`` that may be the start of ``marker``."""
    return next((n for n in range(min(len(text), len(marker) - 1), 0, -1) if text.endswith(marker[:n])), 0)
