"""Likelihoods of texts, from an engine's logits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from roundhouse.errors import ServeError

from ..engine.arrays import Float32Array
from ..engine.tokenizer import EngineTokenizer
from .prompt_pass import Passage, PromptPass
from .scorer import Continuation, Likelihood, TextToken

__all__ = ["EngineLikelihoods", "encode_pair"]


@dataclass
class _Group:
    """Continuations that run the same tokens: four answers A to D of one token each run their question once."""

    passage: Passage
    targets: list[tuple[int, list[int]]] = field(default_factory=list)
    """Number of a continuation, and its tokens."""


class EngineLikelihoods:
    """Puts texts to an engine's tokens and reads what its logits say of them.

    Args:
        prompts: runs tokens.
        tokenizer: the model's.
        room: tokens that a text may have.
    """

    def __init__(self, prompts: PromptPass, tokenizer: EngineTokenizer, *, room: int) -> None:
        self._prompts = prompts
        self._tokenizer = tokenizer
        self._room = room

    def score(self, continuations: Sequence[Continuation]) -> Iterator[tuple[int, Likelihood]]:
        """The likelihood of each continuation, by its number."""
        groups: dict[tuple[int, ...], _Group] = {}
        for number, continuation in enumerate(continuations):
            context, wanted = self._cut(*encode_pair(self._tokenizer, continuation))
            tokens = [*context, *wanted[:-1]]
            group = groups.setdefault((len(context), *tokens), _Group(Passage(tokens, len(context) - 1)))
            group.targets.append((number, wanted))
        ordered = list(groups.values())

        def reduce(number: int, place: int, logits: Float32Array) -> list[list[tuple[float, bool]]]:
            group = ordered[number]
            offset = place - group.passage.first
            asked = np.array([wanted[offset : offset + len(logits)] for _, wanted in group.targets])
            logprobs = _at(logits, asked.T) - _log_sums(logits)[:, None]
            likeliest = logits.argmax(axis=1)[:, None] == asked.T
            return [list(zip(row.tolist(), best.tolist(), strict=True)) for row, best in zip(logprobs, likeliest, strict=True)]

        for place, rows in self._prompts.run([group.passage for group in ordered], reduce):
            for column, (number, wanted) in enumerate(ordered[place].targets):
                mine = [row[column] for row in rows]
                logprob = float(sum(value for value, _ in mine))
                yield number, Likelihood(logprob, len(wanted), all(best for _, best in mine))

    def read(self, texts: Sequence[str], *, top: int) -> Iterator[tuple[int, list[TextToken]]]:
        """Every token of each text, by the text's number.

        Raises:
            ServeError: a text is longer than the engine takes.
        """
        encoded = [self._tokenizer.backend.encode(text) for text in texts]
        for each in encoded:
            if not 2 <= len(each.ids) <= self._room:
                raise ServeError(f"a text of {len(each.ids):,} tokens cannot be read; this engine takes up to {self._room:,}")

        def reduce(number: int, place: int, logits: Float32Array) -> list[tuple[float, dict[int | str, float]]]:
            after = np.array(encoded[number].ids[place + 1 : place + 1 + len(logits)])
            sums = _log_sums(logits)
            logprobs = _at(logits, after[:, None])[:, 0] - sums
            return list(zip(logprobs.tolist(), _likeliest(logits, sums, top), strict=True))

        for number, rows in self._prompts.run([Passage(list(each.ids[:-1]), 0) for each in encoded], reduce):
            ends = [end for _, end in encoded[number].offsets]
            first = TextToken(ends[0], None, {})
            yield number, [first, *(TextToken(end, *row) for end, row in zip(ends[1:], rows, strict=True))]

    def _cut(self, context: list[int], wanted: list[int]) -> tuple[list[int], list[int]]:
        """Leave out the beginning of what is too long: of the context first, and of what is asked for if it must be."""
        wanted = wanted[-(self._room - 1) :]
        return context[-(self._room - len(wanted)) :], wanted


def encode_pair(tokenizer: EngineTokenizer, continuation: Continuation) -> tuple[list[int], list[int]]:
    """Token ids of context and text, as they are together: a token belongs to where it begins.

    White space at the end of the context goes to the text, as tokens begin with it. An empty context becomes the token that
    begins a document: an end-of-sequence token, unless the tokenizer puts one of its own there.
    """
    context = continuation.context.rstrip()
    text = continuation.context[len(context) :] + continuation.text
    known = tokenizer.encode(context)
    if not context:
        known = known or sorted(tokenizer.eos_ids)[:1]
        plain = list(tokenizer.backend.encode(text, add_special_tokens=False).ids)
        return known, plain
    both = tokenizer.encode(context + text)
    return both[: len(known)], both[len(known) :]


def _at(logits: Float32Array, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """float64 [R, N]: for each row the logits in ``columns``, int64 [R, N]."""
    return np.take_along_axis(logits, columns, axis=1).astype(np.float64)


def _log_sums(logits: Float32Array) -> npt.NDArray[np.float64]:
    """float64 [R]: log Σ exp of each row.

    Raises:
        ServeError: a row has no such number: what an engine makes of a text would be as good as drawn.
    """
    most = logits.max(axis=1)
    if not np.isfinite(most).all():
        raise ServeError("the engine computes no numbers: its logits are NaN or infinite")
    sums = np.exp(logits - most[:, None]).sum(axis=1, dtype=np.float64)
    logs: npt.NDArray[np.float64] = most.astype(np.float64) + np.log(sums)
    return logs


def _likeliest(logits: Float32Array, sums: npt.NDArray[np.float64], count: int) -> list[dict[int | str, float]]:
    if not count:
        return [{} for _ in logits]
    count = min(count, logits.shape[1])
    places = np.argpartition(logits, -count, axis=1)[:, -count:]
    values = np.take_along_axis(logits, places, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    ids = np.take_along_axis(places, order, axis=1).tolist()
    logprobs = (np.take_along_axis(values, order, axis=1) - sums[:, None]).tolist()
    return [dict(zip(row, chances, strict=True)) for row, chances in zip(ids, logprobs, strict=True)]
