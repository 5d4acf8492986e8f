"""The native paged attention on torch's tensors.

The kernels see addresses and strides of tensors on the CPU. One :class:`NativeAttention` belongs to one
pool of pages. A step's tables are taken once, by :meth:`NativeAttention.step`, and then each layer
attends by :meth:`AttentionStep.attend`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from roundhouse.errors import ServeError, SetupError

from .native_interface import Batch, Code, Fault, Layer, Pool, Tokens

if TYPE_CHECKING:
    import torch

__all__ = ["HEAD_MULTIPLE", "AttentionStep", "LayerPlace", "NativeAttention", "PoolGeometry", "fault_error"]

HEAD_MULTIPLE = 16
"""The kernels take head sizes that are multiples of this."""


@dataclass(frozen=True)
class LayerPlace:
    """Where a layer's rows lie in each page, in bytes from the page's start, and what FP8 rows were divided by."""

    key_offset: int
    value_offset: int
    key_scale: float = 1.0
    value_scale: float = 1.0


@dataclass(frozen=True)
class PoolGeometry:
    """What a page holds: for each layer and field rows of ``kv_heads * head_dim`` elements, ``page_tokens`` of them."""

    page_tokens: int
    kv_heads: int
    head_dim: int
    dtype: Literal["bf16", "fp8"]
    layers: Mapping[int, LayerPlace]
    """By the model's number of the layer."""


class NativeAttention:
    """The kernels, on one pool.

    Args:
        kernels: from :func:`roundhouse.plugins.native_interface.load_kernels`.
        buffer: uint8 [P, page bytes], contiguous, on the CPU; kept alive here and not copied.
        geometry: what a page holds.

    Raises:
        SetupError: the kernels do not take this head size.
        ServeError: the buffer is not of that kind.
    """

    def __init__(self, kernels: ctypes.CDLL, buffer: torch.Tensor, geometry: PoolGeometry) -> None:
        import torch

        if geometry.head_dim % HEAD_MULTIPLE:
            raise SetupError(f"the native kernels take heads of a multiple of {HEAD_MULTIPLE}, not {geometry.head_dim}")
        if buffer.dtype != torch.uint8 or buffer.dim() != 2 or not buffer.is_contiguous() or buffer.device.type != "cpu":
            raise ServeError("the native kernels need pages as one contiguous uint8 matrix on the CPU")
        self.geometry = geometry
        self._buffer = buffer
        self._attend = kernels.rh_paged_attention
        self.pool = Pool(
            pages=buffer.data_ptr(),
            page_bytes=buffer.shape[1],
            page_count=buffer.shape[0],
            page_tokens=geometry.page_tokens,
            kv_heads=geometry.kv_heads,
            head_dim=geometry.head_dim,
            is_fp8=geometry.dtype == "fp8",
        )
        self.layers = {
            layer: Layer(place.key_offset, place.value_offset, place.key_scale, place.value_scale)
            for layer, place in geometry.layers.items()
        }

    def step(self, page_table: torch.Tensor, query_start: torch.Tensor, context_len: torch.Tensor) -> AttentionStep:
        """Take a step's tables.

        Args:
            page_table: int32 [B, M], pages by column = position // page_tokens. Read anew by every
                layer, up to the end of each row's context; cells behind that are not looked at.
            query_start: int32 [B + 1], row b runs the packed tokens ``query_start[b]:query_start[b + 1]``.
            context_len: int32 [B], tokens of each row in its pages after the step, these included.

        Raises:
            ServeError: a tensor has another dtype or shape.
        """
        return AttentionStep(self, page_table, query_start, context_len)

    def run(self, layer: int, batch: Batch, tokens: Tokens) -> None:
        """One layer.

        Raises:
            ServeError: the tables name a page that is not there, or contradict themselves. Nothing was stored or read.
        """
        fault = Fault()
        code = self._attend(*map(ctypes.byref, (self.pool, self.layers[layer], batch, tokens, fault)))
        if code:
            raise fault_error(code, fault, self.pool.page_count)


class AttentionStep:
    """One step's tables, ready for every layer. See :meth:`NativeAttention.step`."""

    def __init__(
        self, attention: NativeAttention, page_table: torch.Tensor, query_start: torch.Tensor, context_len: torch.Tensor
    ) -> None:
        import torch

        rows, columns = page_table.shape
        tables = (page_table, query_start, context_len)
        if any(each.dtype != torch.int32 or not each.is_contiguous() or each.device.type != "cpu" for each in tables):
            raise ServeError("the native kernels need contiguous int32 tables on the CPU")
        if query_start.shape != (rows + 1,) or context_len.shape != (rows,):
            raise ServeError(f"a page table of {rows} rows does not go with {len(context_len)} contexts")
        self._attention = attention
        self._tables = tables  # their memory must outlive the step
        self.batch = Batch(page_table.data_ptr(), query_start.data_ptr(), context_len.data_ptr(), rows, columns)

    def attend(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float) -> torch.Tensor:
        """Store a layer's keys and values, then attend to what the pages hold.

        Args:
            layer: the model's number of the layer.
            query: [H, T, D], rotated, float32 or bfloat16, in any strides.
            key: [Hkv, T, D], rotated, of the same dtype.
            value: [Hkv, T, D], of the same dtype.
            scaling: factor on the scores.

        Returns:
            [T, H, D], contiguous, of the queries' dtype. A row's result is bitwise the same whatever
            the other rows are, and whether its tokens run in this step or in several.

        Raises:
            ServeError: a shape or dtype does not fit, or as :meth:`NativeAttention.run`.
        """
        import torch

        geometry = self._attention.geometry
        heads, tokens, dim = query.shape
        stored = (geometry.kv_heads, tokens, geometry.head_dim)
        if key.shape != stored or value.shape != stored or dim != geometry.head_dim:
            raise ServeError(f"queries {tuple(query.shape)} with keys {tuple(key.shape)} do not fit pages of {stored} rows")
        if query.dtype not in (torch.float32, torch.bfloat16) or not query.dtype == key.dtype == value.dtype:
            raise ServeError(f"the native kernels take float32 or bfloat16, not {query.dtype} with {key.dtype}")
        query, key, value = (each if each.stride(2) == 1 else each.contiguous() for each in (query, key, value))
        output = query.new_empty(tokens, heads, dim)
        call = Tokens(
            *(each.data_ptr() for each in (query, key, value, output)),
            *_strides(query),
            *_strides(key),
            *_strides(value),
            tokens,
            heads,
            query.dtype == torch.bfloat16,
            scaling,
        )
        self._attention.run(layer, self.batch, call)
        return output


def _strides(rows: torch.Tensor) -> tuple[Any, Any]:
    """Elements from token to token and from head to head."""
    return rows.stride(1), rows.stride(0)


def fault_error(code: int, fault: Fault, pages: int) -> ServeError:
    """What a call's code means.

    Args:
        code: anything but 0.
        fault: where it was found.
        pages: of the pool.
    """
    row, column = fault.row, fault.column
    if code == Code.BAD_PAGE:
        return ServeError(
            f"row {row}, column {column} of the page table is none of the {pages} pages; nothing was read or stored"
        )
    if code == Code.BAD_ROW:
        what = "its tokens, context and page table columns do not fit, or it is longer than a request may be"
        return ServeError(f"row {row} of the batch contradicts itself: {what}")
    if code == Code.BAD_TOKEN:
        return ServeError("a token of the batch is none of the vocabulary, or a row that is asked for is none of the batch")
    if code == Code.NO_MEMORY:
        return ServeError("there is no memory left for the step")
    return ServeError("pages, heads and offsets do not fit each other")
