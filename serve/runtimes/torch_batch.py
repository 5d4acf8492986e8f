"""A step batch as tensors, with everything attention needs computed from the page table that the guard checks."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..engine.batch import StepBatch
from ..engine.runtime import PreparedBatch

__all__ = ["Prompt", "TorchBatch", "prepare_batch"]


@dataclass(frozen=True)
class Prompt:
    """A row that runs several tokens: packed tokens ``start:end``, ``context`` tokens cached after the step."""

    start: int
    end: int
    context: int
    pages: torch.Tensor
    """int64 [1, ceil(context / page_tokens)]"""


@dataclass(frozen=True)
class TorchBatch(PreparedBatch):
    """T packed tokens of B rows; the first ``len(single_table)`` rows run one token each."""

    token_ids: torch.Tensor
    """int64 [1, T]"""
    positions: torch.Tensor
    """int64 [1, T]"""
    slots: torch.Tensor
    """int64 [T]: where each token's rows are stored, ``page * page_tokens + token``."""
    fresh_pages: torch.Tensor
    """int64 [N]: pages whose first token is written in this step."""
    single_table: torch.Tensor
    """int64 [S, C]: pages of the rows that run one token; cells beyond a row's context repeat its first page."""
    single_mask: torch.Tensor
    """bool [S, 1, 1, C * page_tokens]: cached tokens that each of these rows attends to."""
    prompts: tuple[Prompt, ...]
    sample_rows: torch.Tensor
    """int64 [R]"""


def prepare_batch(batch: StepBatch, page_tokens: int) -> TorchBatch:
    """Put a batch into tensors."""
    page_table = torch.from_numpy(batch.page_table)
    table = page_table.long()
    positions = torch.from_numpy(batch.positions)
    starts, contexts = batch.query_start.tolist(), batch.context_len.tolist()
    counts = torch.from_numpy(batch.query_start).diff()
    rows = torch.repeat_interleave(torch.arange(len(contexts)), counts)
    pages, within = table[rows, positions // page_tokens], positions % page_tokens
    singles = int((counts == 1).sum())
    single_table, single_mask = _singles(table[:singles], torch.from_numpy(batch.context_len[:singles]), page_tokens)
    return TorchBatch(
        page_table=page_table,
        page_count=torch.from_numpy(batch.page_count),
        expected_tags=torch.from_numpy(batch.expected_tags),
        token_ids=torch.from_numpy(batch.token_ids)[None],
        positions=positions[None],
        slots=pages * page_tokens + within,
        fresh_pages=pages[within == 0],
        single_table=single_table,
        single_mask=single_mask,
        prompts=tuple(
            Prompt(starts[row], starts[row + 1], context, table[row : row + 1, : -(-context // page_tokens)])
            for row, context in enumerate(contexts)
            if row >= singles
        ),
        sample_rows=torch.from_numpy(batch.sample_rows),
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
