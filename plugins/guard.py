"""The page-tag guard as the engine loop calls it: one batched comparison before every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .page_tag import Int32Array

if TYPE_CHECKING:
    import torch

__all__ = ["PageGuard", "TorchPageGuard"]


class PageGuard(Protocol):
    """Compares the tags a batch expects with the tags its pages carry, on the tables attention will read."""

    def bad_rows(
        self, page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: Int32Array
    ) -> list[tuple[int, int]]:
        """(row, first bad column) of every mismatching row; empty when all agree.

        The first three are tensors of the shapes and dtypes of
        :func:`roundhouse.plugins.page_tag.first_bad_columns`, on one device; ``page_tags`` is the
        tracker's own table.
        """
        ...


class TorchPageGuard:
    """The comparison as the operation that torch knows: native where kernels are, on whatever device the tables are."""

    def bad_rows(
        self, page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: Int32Array
    ) -> list[tuple[int, int]]:
        import torch

        from .page_guard_op import page_guard

        # On the CPU this shares the tracker's memory: nothing is copied.
        tags = torch.from_numpy(page_tags).to(page_table.device)
        first_bad = page_guard(page_table, page_count, expected_tags, tags).tolist()
        return [(row, column) for row, column in enumerate(first_bad) if column >= 0]
