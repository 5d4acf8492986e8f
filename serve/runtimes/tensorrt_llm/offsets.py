"""Page tables as TensorRT-LLM's attention reads them: offsets of key and value blocks in the pool.

A pool is ``[page][layer][key, value][head][token][dim]``. An offset counts blocks, a block being the keys or the values of a
page in one layer; attention adds the layer's own place to the pool's address.
"""

from __future__ import annotations

import torch

from roundhouse.errors import ServeError

__all__ = ["block_offsets", "check_pool_size"]

_KEYS_AND_VALUES = 2
_MOST_BLOCKS = 2**31
"""The highest bit of an offset means another pool, on the host."""


def check_pool_size(pages: int, layers: int) -> None:
    """Refuse a pool that offsets cannot count.

    Raises:
        ServeError: naming the most pages there may be.
    """
    most = _MOST_BLOCKS // (layers * _KEYS_AND_VALUES)
    if pages > most:
        raise ServeError(f"{pages:,} KV pages of {layers} layers are more than offsets count", hint=f"At most {most:,} are.")


def block_offsets(page_table: torch.Tensor, *, layers: int, columns: int) -> torch.Tensor:
    """Offsets of every page of a table.

    Cells without a page repeat their row's first page: attention must be able to read them, and finds nothing there that is
    not the row's own.

    Args:
        page_table: int32 [B, M], −1 where unused; M may be less or more than ``columns``, as long as no used cell lies beyond.
        layers: layers of the pool.
        columns: the last dimension of the result.

    Returns:
        int32 [1, B, 2, columns], on the same device.
    """
    rows, given = page_table.shape
    table = page_table.new_full((rows, columns), -1)
    table[:, :given] = page_table[:, :columns]
    pages = torch.where(table >= 0, table, table[:, :1])
    keys = pages * (layers * _KEYS_AND_VALUES)
    return torch.stack((keys, keys + 1), dim=1)[None].to(torch.int32)
