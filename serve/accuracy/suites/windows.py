"""A text cut into sentences, which are counted, and windows, which are read."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Text", "Window"]

_SENTENCE = re.compile(r"(?<=[.!?\"”)])\s+(?=[A-Z\"“(—])|\n+")


@dataclass(frozen=True)
class Window:
    """A part of a text that is read at once."""

    text: str
    start: int
    """Where its text begins in the whole one."""
    sentences: range
    """Those that count."""


class Text:
    """A text cut into sentences, and these into windows.

    Args:
        text: what is cut; white space at its end belongs to no sentence of its own.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        starts = [0, *(match.end() for match in _SENTENCE.finditer(text.rstrip()))]
        self.bounds = [*starts, len(text)]
        """Where sentences begin, and where the last one ends, in characters."""

    @property
    def sentences(self) -> int:
        """How many there are."""
        return len(self.bounds) - 1

    def sentence(self, number: int) -> str:
        """One of them, from 0."""
        return self.text[self.bounds[number] : self.bounds[number + 1]].strip()

    def windows(self, sentences: int, lead_in: int, counted: int) -> list[Window]:
        """Windows over the first sentences.

        Args:
            sentences: how many count.
            lead_in: characters before them, about.
            counted: characters of sentences in a window, about; a sentence is never cut.
        """
        windows, first = [], 0
        for number in range(sentences):
            if self.bounds[number + 1] - self.bounds[first] >= counted or number + 1 == sentences:
                begin = self._lead_in(self.bounds[first], lead_in)
                # White space at the end would be a token that stands nowhere else.
                text = self.text[begin : self.bounds[number + 1]].rstrip()
                windows.append(Window(text, begin, range(first, number + 1)))
                first = number + 1
        return windows

    def _lead_in(self, start: int, length: int) -> int:
        """Where a lead-in begins: with a word."""
        return 0 if start <= length else self.text.index(" ", start - length - 1) + 1
