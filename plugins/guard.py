"""The page-tag guard as the engine loop calls it: one batched comparison before every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .page_tag import Int32Array

if TYPE_CHECKING:
    import torch

__all__ = ["NullGuard", "PageGuard", "TorchPageGuard"]


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
    """The comparison in plain torch operations, on whatever device the tables are."""

    def bad_rows(
        self, page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: Int32Array
    ) -> list[tuple[int, int]]:
        import torch

        pages, columns = len(page_tags), page_table.shape[1]
        # On the CPU this shares the tracker's memory: nothing is copied.
        tags = torch.from_numpy(page_tags).to(page_table.device)
        counted = torch.arange(columns, device=page_table.device)[None] < page_count[:, None]
        in_range = (page_table >= 0) & (page_table < pages)
        # Any page stands in for one out of range, and any row of tags for an empty table: `in_range` decides there.
        found = tags[page_table.clamp(0, pages - 1).long()] if pages else expected_tags
        bad = torch.cat((counted & (~in_range | (found != expected_tags)), (page_count > columns)[:, None]), dim=1)
        wrong = bad.any(1) | (page_count < 0)
        if not bool(wrong.any()):
            return []
        first = torch.where(page_count < 0, 0, bad.int().argmax(1))
        return [(row, int(first[row])) for row in wrong.nonzero().flatten().tolist()]


class NullGuard:
    """The guard is off: nothing is compared and nothing is looked at."""

    def bad_rows(
        self, page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: Int32Array
    ) -> list[tuple[int, int]]:
        return []
