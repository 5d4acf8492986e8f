"""A step batch as tensors, and what attention reads: computed from the page table that the guard checked.

Two stages on purpose. :func:`prepare_batch` makes the tensors that the guard looks at.
:func:`attention_tables` runs after the guard and takes page numbers from nowhere but that table, so
what runs is what was checked.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from roundhouse.errors import ServeError

from ..engine.batch import StepBatch
from ..engine.runtime import PreparedBatch

__all__ = ["AttentionTables", "Prompt", "TorchBatch", "attention_tables", "prepare_batch"]


@dataclass(frozen=True)
class TorchBatch(PreparedBatch):
    """T packed tokens of B rows; rows that run one token come first. Holds page numbers in ``page_table`` only."""

    token_ids: torch.Tensor
    """int64 [1, T]"""
    positions: torch.Tensor
    """int64 [1, T]: for rotary embeddings only. Which cell of the page table a token belongs to is told by its place in the row
    and by ``context_len``, which the page check has seen."""
    sample_rows: torch.Tensor
    """int64 [R]"""


@dataclass(frozen=True)
class Prompt:
    """A row that runs several tokens: packed tokens ``start:end``, ``context`` tokens cached after the step."""

    start: int
    end: int
    context: int
    pages: torch.Tensor
    """int64 [1, ceil(context / page_tokens)]"""


@dataclass(frozen=True)
class AttentionTables:
    """Where a batch's keys and values are written and read; the first ``len(single_table)`` rows run one token each."""

    slots: torch.Tensor
    """int64 [T]: where each token's rows are stored, ``page * page_tokens + token``."""
    fresh_pages: torch.Tensor
    """int64 [N]: pages whose first token is written in this step."""
    single_table: torch.Tensor
    """int64 [S, C]: pages of the rows that run one token; cells beyond a row's context repeat its first page."""
    single_mask: torch.Tensor
    """bool [S, 1, 1, C * page_tokens]: cached tokens that each of these rows attends to."""
    prompts: tuple[Prompt, ...]


def prepare_batch(batch: StepBatch) -> TorchBatch:
    """Put a batch into tensors."""
    return TorchBatch(
        page_table=torch.from_numpy(batch.page_table),
        page_count=torch.from_numpy(batch.page_count),
        expected_tags=torch.from_numpy(batch.expected_tags),
        token_ids=torch.from_numpy(batch.token_ids)[None],
        positions=torch.from_numpy(batch.positions)[None],
        query_start=torch.from_numpy(batch.query_start),
        context_len=torch.from_numpy(batch.context_len),
        sample_rows=torch.from_numpy(batch.sample_rows),
    )


def attention_tables(batch: TorchBatch, page_tokens: int) -> AttentionTables:
    """What attention reads of a batch whose page table was checked.

    Raises:
        ServeError: rows, tokens and contexts contradict each other.
    """
    table = batch.page_table.long()
    starts, contexts = batch.query_start.tolist(), batch.context_len.tolist()
    counts = batch.query_start.diff()
    tokens = batch.token_ids.shape[1]
    if starts[0] != 0 or starts[-1] != tokens or bool(((counts < 1) | (counts > batch.context_len)).any()):
        raise ServeError(
            f"the batch contradicts itself: its {tokens} tokens do not fit rows from {starts} and contexts {contexts}"
        )
    rows = torch.repeat_interleave(torch.arange(len(contexts)), counts)
    # A row's tokens are the last of its context.
    positions = torch.arange(tokens) + (batch.context_len - batch.query_start[1:])[rows]
    pages, within = table[rows, positions // page_tokens], positions % page_tokens
    singles = int((counts == 1).sum())
    single_table, single_mask = _singles(table[:singles], batch.context_len[:singles], page_tokens)
    return AttentionTables(
        slots=pages * page_tokens + within,
        fresh_pages=pages[within == 0],
        single_table=single_table,
        single_mask=single_mask,
        prompts=tuple(
            Prompt(starts[row], starts[row + 1], context, table[row : row + 1, : -(-context // page_tokens)])
            for row, context in enumerate(contexts)
            if row >= singles
        ),
    )


def _singles(table: torch.Tensor, context: torch.Tensor, page_tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    if not len(table):
        return table[:, :0], torch.zeros(0, 1, 1, 0, dtype=torch.bool)
    columns = -(-int(context.max()) // page_tokens)
    table = table[:, :columns]
    # Masked columns must still be readable, and only with numbers of the row's own: see KvPages.clear.
    used = torch.arange(columns)[None] * page_tokens < context[:, None]
    mask = torch.arange(columns * page_tokens)[None] < context[:, None]
    return torch.where(used, table, table[:, :1]), mask[:, None, None]
