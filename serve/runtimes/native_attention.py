"""Paged attention by the native kernels of :mod:`roundhouse.plugins`."""

from __future__ import annotations

import ctypes

from roundhouse.errors import SetupError
from roundhouse.plugins.native_attention import LayerPlace, NativeAttention, PoolGeometry

from .attention import LayerAttention
from .torch_batch import TorchBatch
from .torch_pages import KvPages

__all__ = ["NativePagedAttention"]


class NativePagedAttention:
    """Stores and attends in one call a layer. Never reads behind a row's last token, so fresh pages need no clearing.

    Args:
        pages: bfloat16 or FP8 pages of ``k`` and ``v``.
        kernels: from :func:`roundhouse.plugins.native_interface.load_kernels`.

    Raises:
        SetupError: the kernels do not take these pages.
    """

    name = "native"

    def __init__(self, pages: KvPages, kernels: ctypes.CDLL) -> None:
        if pages.dtype == "float32":
            raise SetupError("the native kernels store no float32 pages")
        places = {}
        for layer in pages.layers:
            key, value = pages.place("k", layer), pages.place("v", layer)
            places[layer] = LayerPlace(key.offset, value.offset, key.scale, value.scale)
        geometry = PoolGeometry(pages.page_tokens, pages.heads, pages.head_dim, pages.dtype, places)
        self.pool = NativeAttention(kernels, pages.buffer, geometry)

    def begin(self, batch: TorchBatch) -> LayerAttention:
        return self.pool.step(batch.page_table, batch.query_start, batch.context_len).attend
