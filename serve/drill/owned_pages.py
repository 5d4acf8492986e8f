"""Pages without a model: each row says for which tokens it was written, so that a wrong read is known for certain.

A row is a 64-bit hash of the cache salt and of every token up to its own. What a request may read is exactly what it would
have written itself, also where it shares the pages of a prefix. The next token is drawn from everything that was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch

from roundhouse.plugins.guard import PageGuard, TorchPageGuard
from roundhouse.plugins.page_tag import FREE

from ..engine.arrays import Float32Array
from ..engine.batch import StepBatch
from ..engine.runtime import PreparedBatch
from ..engine.sequence import Sequence
from .pages import BoolArray

__all__ = ["VOCAB", "OwnedPages"]

VOCAB = 64
_FIRST_TOKEN = 3
_FACTOR, _ADDEND, _MASK = 6364136223846793005, 1442695040888963407, 2**64 - 1
"""Of a linear congruential generator (Knuth's MMIX): one step of it takes the hash of a row to that of the next."""

Rows = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class _OwnedBatch(PreparedBatch):
    batch: StepBatch


class OwnedPages:
    """Keeps a row a token, uint64 [P, page_tokens].

    Args:
        pages: how many.
        page_tokens: tokens a page holds.
    """

    def __init__(self, pages: int, page_tokens: int) -> None:
        self.page_tokens = page_tokens
        self.page_guard: PageGuard = TorchPageGuard()
        self._rows: Rows = np.zeros((pages, page_tokens), dtype=np.uint64)
        self._written_under = np.full(pages, FREE, dtype=np.int32)
        """int32 [P]: the tag of whoever wrote into each page last. Leftovers may happen to be what a row would have written."""
        self._due: WeakKeyDictionary[Sequence, list[int]] = WeakKeyDictionary()
        self._read = np.zeros((0, 0), dtype=np.uint64)
        """What each row of the last batch read; 0 where nothing."""

    def prepare(self, batch: StepBatch) -> PreparedBatch:
        return _OwnedBatch(
            page_table=torch.from_numpy(batch.page_table),
            page_count=torch.from_numpy(batch.page_count),
            expected_tags=torch.from_numpy(batch.expected_tags),
            query_start=torch.from_numpy(batch.query_start),
            context_len=torch.from_numpy(batch.context_len),
            batch=batch,
        )

    def forward(self, prepared: PreparedBatch) -> Float32Array:
        assert isinstance(prepared, _OwnedBatch)
        batch, table = prepared.batch, prepared.page_table.numpy()
        counts = np.diff(batch.query_start)
        of_row = np.repeat(np.arange(len(counts)), counts)
        due = [self._due_rows(sequence)[sequence.computed : sequence.computed + count] for sequence, count in batch.runs]
        pages, within = table[of_row, batch.positions // self.page_tokens], batch.positions % self.page_tokens
        self._rows[pages, within] = np.concatenate(due)
        self._written_under[pages] = batch.expected_tags[of_row, batch.positions // self.page_tokens]
        self._read = np.where(self._reads(batch.context_len, table), self._through(table), 0)
        tokens = _next_tokens(self._read[of_row[batch.sample_rows]])
        logits = np.zeros((len(tokens), VOCAB), dtype=np.float32)
        logits[np.arange(len(tokens)), tokens] = 1
        return logits

    def page_bytes(self, page: int) -> npt.NDArray[np.uint8]:
        content: npt.NDArray[np.uint8] = self._rows[page].view(np.uint8)
        return content

    def written(self, batch: StepBatch) -> None:
        return None

    def changed_rows(self, batch: StepBatch, page_table: npt.NDArray[np.int32]) -> BoolArray:
        before = np.array([sequence.computed for sequence, _ in batch.runs])
        due = self._due_table(batch, before, page_table.shape[1] * self.page_tokens)
        changed = (self._reads(before, page_table) & (self._through(page_table) != due)).any(axis=1)
        read = np.arange(page_table.shape[1])[None] * self.page_tokens < before[:, None]
        foreign = read & (self._written_under[batch.page_table] != batch.expected_tags)
        either: BoolArray = changed | foreign.any(axis=1)
        return either

    def wrong_answers(self, batch: StepBatch) -> BoolArray:
        wrong: BoolArray = (self._read != self._due_table(batch, batch.context_len, self._read.shape[1])).any(axis=1)
        return wrong

    def overwrite(self, page: int, token: int, source: int) -> None:
        self._rows[page, token] = ~self._rows[source, token]

    def swap(self, page: int, one: int, other: int) -> None:
        self._rows[page, [one, other]] = self._rows[page, [other, one]]

    def _through(self, table: npt.NDArray[np.int32]) -> Rows:
        """uint64 [B, M * page_tokens]: what lies in each row's pages; a cell without a page reads another's, as memory does."""
        rows: Rows = self._rows[table % len(self._rows)].reshape(len(table), -1)
        return rows

    def _reads(self, context: npt.NDArray[np.int64] | npt.NDArray[np.int32], table: npt.NDArray[np.int32]) -> BoolArray:
        reads: BoolArray = np.arange(table.shape[1] * self.page_tokens)[None] < context[:, None]
        return reads

    def _due_table(self, batch: StepBatch, context: npt.NDArray[np.int64] | npt.NDArray[np.int32], columns: int) -> Rows:
        """uint64 [B, columns]: what each row should find in its first ``context`` rows; 0 behind them."""
        due = np.zeros((len(context), columns), dtype=np.uint64)
        for row, (sequence, _) in enumerate(batch.runs):
            due[row, : context[row]] = self._due_rows(sequence)[: context[row]]
        return due

    def _due_rows(self, sequence: Sequence) -> Rows:
        """What a sequence writes, and all that it may read."""
        due = self._due.setdefault(sequence, [])
        row = due[-1] if due else int.from_bytes(sequence.root[:8], "little")
        for token in sequence.tokens[len(due) :]:
            row = ((row + token + 1) * _FACTOR + _ADDEND) & _MASK
            due.append(row)
        return np.array(due, dtype=np.uint64)


def _next_tokens(read: Rows) -> npt.NDArray[np.int64]:
    """int64 [R]: the token that follows everything that each row read."""
    drawn = (read.sum(axis=1) >> np.uint64(33)) % np.uint64(VOCAB - _FIRST_TOKEN)
    tokens: npt.NDArray[np.int64] = drawn.astype(np.int64) + _FIRST_TOKEN
    return tokens
