"""Stop strings over text that arrives in pieces: the text ends before the first one, wherever pieces are cut."""

from __future__ import annotations

__all__ = ["StopStrings"]


class StopStrings:
    """Passes text through until a stop string appears; ``found`` then names it and the rest is dropped.

    The stop string that is complete first counts; of those that end at the same character, the longest.
    So the result does not depend on how the text was cut.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self.found: str | None = None
        self._stops = stops
        self._held = ""

    def push(self, piece: str) -> str:
        """Take a piece; returns what cannot be part of a stop string any more."""
        if self.found is not None:
            return ""
        text = self._held + piece
        matches = [(start + len(stop), start, stop) for stop in self._stops if (start := text.find(stop)) >= 0]
        if matches:
            _, start, self.found = min(matches)
            self._held = ""
            return text[:start]
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """The text has ended: returns what was held back."""
        rest, self._held = self._held, ""
        return rest


def _overlap(text: str, stop: str) -> int:
    """Characters at the end of ``text`` that may be the start of ``stop``."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
