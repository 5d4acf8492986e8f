"""One rank's KV pages on its device, and the three tensors that tell an engine where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from roundhouse.errors import ServeError

from .geometry import EngineGeometry
from .offsets import block_offsets, check_pool_size
from .ranks import RankPart
from .session import Device

__all__ = ["KvPool"]


class KvPool:
    """Pages of a rank: uint8 [pages, page_bytes], a page being ``[layer][key, value][head][token][dim]``.

    All layers of a model with one kind of attention share one pool.

    Args:
        geometry: of the engine.
        part: of the rank.
        pages: how many.
        device: where they lie; they are zeroed.

    Raises:
        ServeError: so many pages do not fit, on the device or in an offset.
    """

    def __init__(self, geometry: EngineGeometry, part: RankPart, *, pages: int, device: Device) -> None:
        self.layers = len(part.layers)
        self.page_bytes = self.layers * 2 * geometry.block_bytes
        self._columns = geometry.columns
        self._device = device
        check_pool_size(pages, self.layers)
        try:
            with device.active():
                self.buffer = torch.zeros(pages, self.page_bytes, dtype=torch.uint8, device=device.torch_device)
        except torch.OutOfMemoryError:
            raise ServeError(
                f"{pages:,} KV pages of {self.page_bytes:,} B do not fit beside the engine",
                hint="Lower memory_fraction, kv_cache_bytes or kv_cache_tokens.",
            ) from None
        self.pointers = torch.tensor([[self.buffer.data_ptr(), 0]], dtype=torch.int64)
        """int64 [1, 2] on the host: the pool's address, and no second pool there."""
        self.mapping = torch.tensor([[0, layer] for layer in range(self.layers)], dtype=torch.int32)
        """int32 [layers, 2] on the host: each layer's pool and its place in it."""

    def offsets(self, page_table: torch.Tensor) -> torch.Tensor:
        """Block offsets of a checked page table, int32 [B, M] → int32 [1, B, 2, columns], on the device."""
        return block_offsets(page_table, layers=self.layers, columns=self._columns)

    def read(self, page: int) -> npt.NDArray[np.uint8]:
        """What a page holds now: uint8 [page_bytes], a copy on the host."""
        content: npt.NDArray[Any] = self._device.get(self.buffer[page])
        return content

    def write(self, page: int, content: npt.NDArray[np.uint8]) -> None:
        """Overwrite a page, uint8 [page_bytes]."""
        with self._device.active():
            self.buffer[page] = self._device.put(content)

    def clear(self) -> None:
        """Zero every page."""
        with self._device.active():
            self.buffer.zero_()
