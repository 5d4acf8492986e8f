"""Perplexity, and next-token agreement with the base, on the shipped public-domain text that nothing was calibrated on.

The text is read in windows: each is a few sentences that count, behind a lead-in that does not. An item is a sentence. A token
belongs to the sentence that its last character is in.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from roundhouse.build.texts import HELD_OUT_NAME, held_out_text
from roundhouse.errors import ServeError

from ..records import Suite
from ..scorer import Need, Scorer, TextToken
from .contract import DETAILS, DOUBT, Answered, Ground, shortened
from .windows import Text, Window

__all__ = ["Agreement", "Perplexity", "divergence"]

_SIZES = ((400, 800), (200, 300), (0, 1))
"""Characters of a window's lead-in and of what counts, about; the smaller ones where the largest do not fit."""
_TOP = 64
"""Likeliest tokens that are compared one by one; all others together count as one."""
_UNTOLD_NATS = 20.0
"""From here on a perplexity says nothing to anybody: a token drawn from all tokens has 12."""


@dataclass(frozen=True)
class _Reading:
    """The tokens that count, by sentence, in order."""

    by_sentence: dict[int, list[TextToken]]
    keys: dict[int, list[int]]
    """Where each of them ends in the whole text: equal where two tokenizers cut alike."""


class _ReadingTask:
    """What both tasks share: the text is read once, with what the model expects in each place."""

    name: str

    def needs(self, scorer: Scorer) -> Need:
        return "likelihoods"

    def size(self, ground: Ground) -> int:
        return ground.cut(Text(held_out_text()).sentences)

    def note(self, ground: Ground) -> str:
        lead_in, counted, _ = self._windows(ground, Text(held_out_text()))
        size = f"windows of about {lead_in + counted:,} characters" if lead_in else "single sentences"
        return f"{HELD_OUT_NAME}, read in {size}; an item is a sentence"

    def _windows(self, ground: Ground, text: Text) -> tuple[int, int, list[Window]]:
        """The largest windows that fit: characters of lead-in, characters that count, and the windows."""
        for lead_in, counted in _SIZES[:-1]:
            windows = text.windows(self.size(ground), lead_in, counted)
            lengths = [ground.scorer.count_tokens(window.text) or 0 for window in windows]
            if ground.room is None or max(lengths) <= ground.room:
                return lead_in, counted, windows
        return *_SIZES[-1], text.windows(self.size(ground), *_SIZES[-1])

    def _read(self, ground: Ground, text: Text) -> Iterator[tuple[int, list[TextToken], list[int]]]:
        """Each sentence, its tokens and their keys, as soon as its window is read, by whichever task comes first."""
        kept: _Reading | None = ground.memory.get("reading")
        if kept is None:
            kept = _Reading({}, {})
            _, _, windows = self._windows(ground, text)
            for number, tokens in ground.scorer.read([window.text for window in windows], top=_TOP):
                yield from _sentences(windows[number], tokens, text, kept)
            ground.memory["reading"] = kept
        else:
            yield from ((number, tokens, kept.keys[number]) for number, tokens in kept.by_sentence.items())


def _sentences(
    window: Window, tokens: list[TextToken], text: Text, kept: _Reading
) -> Iterator[tuple[int, list[TextToken], list[int]]]:
    """The sentences of a window that was read, which are also kept."""
    for number in window.sentences:
        kept.by_sentence[number], kept.keys[number] = [], []
    for token in tokens:
        end = window.start + token.end
        sentence = bisect_right(text.bounds, end - 1) - 1
        if token.logprob is not None and sentence in window.sentences:
            kept.by_sentence[sentence].append(token)
            kept.keys[sentence].append(end)
    for number in window.sentences:
        yield number, kept.by_sentence[number], kept.keys[number]


class Perplexity(_ReadingTask):
    """How little the model expects a text that it should: lower is better."""

    suite: Suite = "roundhouse"
    name, metric = "rh-perplexity", "perplexity"
    higher_is_better = is_share = compares = False

    def answer(self, ground: Ground, base: Mapping[str, Any] | None) -> Iterator[Answered]:
        text = Text(held_out_text())
        for number, tokens, _ in self._read(ground, text):
            if tokens:
                logprob = sum(token.logprob or 0.0 for token in tokens)
                told = _told(-logprob / len(tokens))
                yield Answered(number, logprob, shortened(text.sentence(number)), told, None, tokens=len(tokens))


def _told(nats: float) -> str:
    """How little a sentence was expected, a token of it."""
    return f"perplexity {math.exp(nats):.1f}" if nats < _UNTOLD_NATS else f"{nats:.0f} nats a token"


class Agreement(_ReadingTask):
    """In how many places the model puts the same token first as its base: what quantizing changed, whether right or wrong."""

    suite: Suite = "roundhouse"
    name, metric = "rh-agreement", "agreement"
    higher_is_better, is_share, compares = True, False, True

    def answer(self, ground: Ground, base: Mapping[str, Any] | None) -> Iterator[Answered]:
        text = Text(held_out_text())
        if base is None:  # the base's turn: what it expects is remembered for the subject's
            for _ in self._read(ground, text):
                pass
            return
        theirs: _Reading = base["reading"]
        divergences: list[float | None] = []
        for number, tokens, keys in self._read(ground, text):
            if theirs.keys.get(number) != keys:
                raise ServeError("the base cuts the text into other tokens, so that places cannot be compared")
            if not tokens:
                continue
            pairs = list(zip(theirs.by_sentence[number], tokens, strict=True))
            agreeing = sum(_first(before) == _first(after) for before, after in pairs)
            divergences += [divergence(before.top, after.top) for before, after in pairs]
            told = f"{agreeing} of {len(tokens)} tokens alike"
            yield Answered(number, agreeing, shortened(text.sentence(number)), told, None, tokens=len(tokens))
        _remember(ground, divergences)


def _remember(ground: Ground, divergences: list[float | None]) -> None:
    """Keep the mean divergence for the score, and in how many places it could not be told."""
    told = [found for found in divergences if found is not None]
    if divergences and not told:
        raise ServeError("subject and base name no likely token in common anywhere, so that they cannot be compared")
    if told:
        ground.memory[DETAILS] = {"KL": sum(told) / len(divergences)}
    if strangers := len(divergences) - len(told):
        where = f"in {strangers} of {len(divergences)} places"
        ground.memory[DOUBT] = f"{where} the two name no likely token in common, which counts as no divergence"


def divergence(base: Mapping[int | str, float], subject: Mapping[int | str, float]) -> float | None:
    """KL(base ‖ subject) in nats, over the tokens that both name and all others together: never more than the whole one.

    Returns:
        None when they name no token in common, which says nothing.

    Raises:
        ServeError: one names tokens by number, and the other by text.
    """
    if {type(token) for token in base} ^ {type(token) for token in subject}:
        raise ServeError(
            "one of subject and base names tokens by number and the other by text, as engines and endpoints do, "
            "so that they cannot be compared"
        )
    named = {token for token in base.keys() & subject.keys() if math.isfinite(base[token]) and math.isfinite(subject[token])}
    if not named:
        return None
    total = sum(math.exp(base[token]) * (base[token] - subject[token]) for token in named)
    rest, rest_there = (max(1.0 - sum(math.exp(top[token]) for token in named), 1e-9) for top in (base, subject))
    return max(0.0, total + rest * math.log(rest / rest_there))


def _first(token: TextToken) -> int | str:
    if not token.top:
        raise ServeError("the endpoint does not name the likeliest tokens")
    return next(iter(token.top))
