"""One step as every rank gets it: plain arrays of a batch, and the order that an engine runs its rows in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundhouse.errors import ServeError

from ...engine.arrays import Int32Array, Int64Array
from ...engine.batch import StepBatch

__all__ = ["CONTEXT", "GENERATION", "Step", "check_chunks", "make_step"]

CONTEXT, GENERATION = 0, 1
"""Request types of TensorRT-LLM: a row that brings tokens of its prompt, and one that brings the token it got last."""


@dataclass(frozen=True)
class Step:
    """B rows of T packed tokens, in the order of the batch. Sent to other ranks, so it holds arrays and nothing else.

    Page numbers are in ``page_table`` only: what the engine reads is computed from it after the page check.
    """

    number: int
    """Counts up; says which step a later message is about."""
    token_ids: Int32Array
    """int32 [T]"""
    positions: Int32Array
    """int32 [T]"""
    query_start: Int32Array
    """int32 [B + 1]"""
    context_len: Int32Array
    """int32 [B]: tokens of each row in the cache after the step."""
    prompt_len: Int32Array
    """int32 [B]: tokens of each row's prompt."""
    page_table: Int32Array
    """int32 [B, M]"""
    page_count: Int32Array
    """int32 [B]"""
    expected_tags: Int32Array
    """int32 [B, M]"""
    sampled: Int64Array
    """int64 [R]: rows whose last token's logits are wanted."""

    @property
    def counts(self) -> Int32Array:
        """int32 [B]: tokens that each row runs."""
        return np.diff(self.query_start).astype(np.int32)

    @property
    def kinds(self) -> Int32Array:
        """int32 [B]: what each row is to the engine.

        A single token behind the prompt is a generation step, also where it is the last that a preempted row computes again.
        Everything else is context: upstream's generation kernels assume a cache that is longer than the prompt.
        """
        generates = (self.counts == 1) & (self.context_len > self.prompt_len)
        return np.where(generates, GENERATION, CONTEXT).astype(np.int32)

    @property
    def order(self) -> Int64Array:
        """int64 [B]: the batch's rows as the engine runs them, contexts first; else as they are."""
        return np.argsort(self.kinds, kind="stable")


def make_step(batch: StepBatch, number: int) -> Step:
    """The step that runs a batch.

    Raises:
        ServeError: logits of a token are wanted that is not its row's last.
    """
    last = batch.query_start[1:].astype(np.int64) - 1
    sampled = np.searchsorted(last, batch.sample_rows)
    if not np.array_equal(last[np.minimum(sampled, len(last) - 1)], batch.sample_rows):
        raise ServeError(
            "a TensorRT-LLM engine gives logits of each row's last token only",
            hint="Ask for likelihoods on the torch target: it runs the same checkpoint.",
        )
    return Step(
        number=number,
        token_ids=batch.token_ids.astype(np.int32),
        positions=batch.positions.astype(np.int32),
        query_start=batch.query_start,
        context_len=batch.context_len,
        prompt_len=np.array([sequence.prompt_tokens for sequence, _ in batch.runs], dtype=np.int32),
        page_table=batch.page_table,
        page_count=batch.page_count,
        expected_tags=batch.expected_tags,
        sampled=sampled,
    )


def check_chunks(step: Step) -> None:
    """Refuse context rows that read what earlier steps wrote, for engines whose prompts must be whole.

    Raises:
        ServeError: a prompt comes in parts, or some of it was found in the prefix cache.
    """
    begun = (step.kinds == CONTEXT) & (step.context_len > step.counts)
    if begun.any():
        raise ServeError(
            f"row {int(begun.argmax())} continues a prompt, and this engine's attention reads prompts whole",
            hint="Its settings must have chunked_prompts and prefix_reuse off.",
        )
