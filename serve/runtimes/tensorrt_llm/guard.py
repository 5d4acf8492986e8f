"""The page check of an engine of several ranks, as the engine loop calls it."""

from __future__ import annotations

import torch

from ...engine.arrays import Int32Array
from .link import Check, Link
from .rank import RankEngine
from .verdict import worst

__all__ = ["RanksGuard"]


class RanksGuard:
    """Compares a batch's tags on every rank's device, each with the tables that its own step will read.

    A :class:`roundhouse.plugins.guard.PageGuard` for rank 0. The step must have been prepared.

    Args:
        own: rank 0 itself.
        link: to the others.
    """

    def __init__(self, own: RankEngine, link: Link) -> None:
        self._own = own
        self._link = link

    def bad_rows(
        self, page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: Int32Array
    ) -> list[tuple[int, int]]:
        self._link.command(Check(page_tags))
        own = self._own.first_bad(page_table, page_count, expected_tags, page_tags)
        verdict = worst(self._link.exchange(own))
        return [(row, column) for row, column in enumerate(verdict.tolist()) if column >= 0]
