"""The step batch: what one step runs, as arrays. Built by the scheduler, read by runtimes and the guard."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Sequence as Rows
from dataclasses import dataclass

import numpy as np

from roundhouse.plugins.page_tag import FREE

from .arrays import Int32Array, Int64Array
from .sequence import Sequence

__all__ = ["Run", "StepBatch", "make_batch"]

UNUSED = -1
"""A page-table cell without a page."""

Run = tuple[Sequence, int]
"""A sequence and how many of its tokens run in this step."""


@dataclass(frozen=True)
class StepBatch:
    """B sequences packed into T tokens. Rows that run one token come first.

    ``page_count`` counts every page a row holds, also those that this step does not read yet: a page
    that was lost before its turn is found at the next step, not when it is needed.
    """

    runs: tuple[Run, ...]
    token_ids: Int64Array
    """int64 [T]"""
    positions: Int64Array
    """int64 [T], each token's position in its sequence."""
    query_start: Int32Array
    """int32 [B + 1]: row b's tokens are ``query_start[b]:query_start[b + 1]``."""
    context_len: Int32Array
    """int32 [B]: tokens of each row in the cache after this step."""
    page_table: Int32Array
    """int32 [B, M]: physical pages by column = position // page_tokens; −1 where unused."""
    page_count: Int32Array
    """int32 [B]: used columns of each row."""
    expected_tags: Int32Array
    """int32 [B, M]: the tags issued with these pages; 0 where unused."""
    sample_rows: Int64Array
    """int64 [R]: packed index of the last token of each row that reaches its sequence's end."""

    @property
    def sampled(self) -> list[Sequence]:
        """The R sequences that get a token from this step, in the order of ``sample_rows``."""
        return [sequence for sequence, count in self.runs if count == sequence.remaining]

    def without(self, rows: Collection[int]) -> StepBatch:
        """This batch with some rows left out."""
        return make_batch([run for row, run in enumerate(self.runs) if row not in rows])


def make_batch(runs: Rows[Run]) -> StepBatch:
    """Pack the next ``count`` tokens of each sequence."""
    ordered = sorted(runs, key=lambda run: run[1] > 1)
    counts = np.array([count for _, count in ordered], dtype=np.int32)
    ends = np.cumsum(counts, dtype=np.int32)
    columns = max((len(sequence.grants) for sequence, _ in ordered), default=0)
    page_table = np.full((len(ordered), columns), UNUSED, dtype=np.int32)
    expected_tags = np.full((len(ordered), columns), FREE, dtype=np.int32)
    for row, (sequence, _) in enumerate(ordered):
        held = len(sequence.grants)
        page_table[row, :held] = [grant.page for grant in sequence.grants]
        expected_tags[row, :held] = [grant.tag for grant in sequence.grants]
    return StepBatch(
        runs=tuple(ordered),
        token_ids=_packed([s.tokens[s.computed : s.computed + count] for s, count in ordered]),
        positions=_packed([range(s.computed, s.computed + count) for s, count in ordered]),
        query_start=np.concatenate((np.zeros(1, dtype=np.int32), ends)),
        context_len=np.array([s.computed + count for s, count in ordered], dtype=np.int32),
        page_table=page_table,
        page_count=np.array([len(s.grants) for s, _ in ordered], dtype=np.int32),
        expected_tags=expected_tags,
        sample_rows=np.array([end - 1 for end, (s, n) in zip(ends, ordered, strict=True) if n == s.remaining], dtype=np.int64),
    )


def _packed(parts: Rows[Rows[int]]) -> Int64Array:
    return np.array([value for part in parts for value in part], dtype=np.int64)
