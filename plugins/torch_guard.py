"""The page-tag guard in plain torch operations, on whatever device the tables are, and what every guard's tables must be."""

from __future__ import annotations

import torch

from roundhouse.errors import ServeError

__all__ = ["check_tables", "torch_page_guard"]


def check_tables(
    page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: torch.Tensor
) -> None:
    """Refuse what no guard takes.

    Raises:
        ServeError: a tensor is not int32, lies on another device, or its shape does not fit the others.
    """
    tables = (page_table, page_count, expected_tags, page_tags)
    if any(each.dtype != torch.int32 or each.device != page_table.device for each in tables):
        raise ServeError("the page guard takes int32 tables that lie on one device")
    fits = page_table.dim() == 2 and page_tags.dim() == 1 and page_table.shape == expected_tags.shape
    if not fits or page_count.shape != page_table.shape[:1]:
        shapes = ", ".join(str(tuple(each.shape)) for each in tables)
        raise ServeError(f"the page guard takes tables of [B, M], [B], [B, M] and [P], not {shapes}")


def torch_page_guard(
    page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: torch.Tensor
) -> torch.Tensor:
    """:func:`roundhouse.plugins.page_tag.first_bad_columns` on tensors; never waits for the device.

    Args:
        page_table: int32 [B, M].
        page_count: int32 [B].
        expected_tags: int32 [B, M].
        page_tags: int32 [P].

    Returns:
        int32 [B], on the same device.

    Raises:
        ServeError: as :func:`check_tables`.
    """
    check_tables(page_table, page_count, expected_tags, page_tags)
    pages, columns = len(page_tags), page_table.shape[1]
    counted = torch.arange(columns, device=page_table.device)[None] < page_count[:, None]
    in_range = (page_table >= 0) & (page_table < pages)
    # Any page stands in for one out of range, and any row of tags for an empty table: `in_range` decides there.
    found = page_tags[page_table.clamp(0, pages - 1).long()] if pages else expected_tags
    # One more column stands for "the count is above M".
    bad = torch.cat((counted & (~in_range | (found != expected_tags)), (page_count > columns)[:, None]), dim=1)
    first = torch.where(bad.any(1), bad.int().argmax(1), -1)
    return torch.where(page_count < 0, 0, first).int()
