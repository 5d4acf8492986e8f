"""KV pages of one group in torch: one preallocated, page-major buffer, and typed views into it.

A page is one contiguous block ``[field][layer][token][head][dim]`` (see
:mod:`roundhouse.build.kv_layout`); the views of a (field, layer) stride over pages.

An FP8 row is stored as ``row / scale`` in float8_e4m3fn, saturating at ±448.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from roundhouse.build.planner.kv_layout import DTYPE_BYTES, KvDtype, KvField, KvGroup
from roundhouse.errors import ServeError

__all__ = ["FieldPlace", "KvPages"]

_STORED: dict[KvDtype, torch.dtype] = {"float32": torch.float32, "bf16": torch.bfloat16, "fp8": torch.uint8}
_FP8_LARGEST = 448.0
_FP8_IN_BF16 = 2.0**120
"""e4m3 bits put in the same places of a bfloat16 are the value divided by this: the exponent biases are 7 and 127."""


class FieldPlace(NamedTuple):
    """Where a layer's rows begin in each page, in bytes, and what FP8 rows were divided by."""

    offset: int
    scale: float


class KvPages:
    """Every page of one group.

    Args:
        group: what a token leaves here; each field's row is ``heads * head_dim`` elements.
        pages: how many pages.
        page_tokens: tokens a page holds.
        heads: KV heads of a row.
        scales: by field name, the FP8 scale of each layer in the field's order; 1.0 where a field is absent.

    Raises:
        ServeError: a row is not a whole number of elements a head, or scales do not match the layers.
    """

    def __init__(
        self, group: KvGroup, *, pages: int, page_tokens: int, heads: int, scales: Mapping[str, tuple[float, ...]]
    ) -> None:
        self.page_tokens = page_tokens
        self.heads = heads
        self.buffer = torch.zeros(pages, group.page_bytes(page_tokens), dtype=torch.uint8)
        self.bytes: npt.NDArray[np.uint8] = self.buffer.numpy()
        """uint8 [pages, page_bytes]: the same memory."""
        (self.dtype,) = {field.dtype for field in group.fields}
        (self.head_dim,) = {_head_dim(field, heads) for field in group.fields}
        self._views: dict[tuple[str, int], torch.Tensor] = {}
        self._places: dict[tuple[str, int], FieldPlace] = {}
        offset = 0
        for field in group.fields:
            field_scales = scales.get(field.name) or (1.0,) * len(field.layers)
            for layer, scale in zip(field.layers, _one_each(field, field_scales), strict=True):
                size = page_tokens * field.row_bytes
                rows = self.buffer[:, offset : offset + size].view(_STORED[field.dtype])
                self._views[field.name, layer] = rows.view(pages, page_tokens, heads, self.head_dim)
                self._places[field.name, layer] = FieldPlace(offset, scale)
                offset += size

    @property
    def layers(self) -> tuple[int, ...]:
        """Every layer that leaves rows here."""
        return tuple(dict.fromkeys(layer for _, layer in self._places))

    def place(self, field: str, layer: int) -> FieldPlace:
        """Where a field of a layer lies in each page, and its scale."""
        return self._places[field, layer]

    def clear(self, pages: torch.Tensor) -> None:
        """Zero whole pages, int64 [N].

        A page must not bring its last holder's numbers along: even where attention masks them, a NaN
        among them would reach the sum.
        """
        self.buffer.index_fill_(0, pages, 0)

    def write(self, field: str, layer: int, slots: torch.Tensor, rows: torch.Tensor) -> None:
        """Store rows.

        Args:
            field: ``k`` or ``v``, as the group names it.
            layer: the model's layer.
            slots: int64 [T], each row's ``page * page_tokens + token``.
            rows: float [T, heads, head_dim].
        """
        view = self._views[field, layer]
        if self.dtype == "fp8":
            scaled = (rows.float() / self._places[field, layer].scale).clamp(-_FP8_LARGEST, _FP8_LARGEST)
            rows = scaled.to(torch.float8_e4m3fn).view(torch.uint8)
        pages, tokens = slots // self.page_tokens, slots % self.page_tokens
        view[pages, tokens] = rows.to(view.dtype)

    def gather(self, field: str, layer: int, table: torch.Tensor) -> tuple[torch.Tensor, float]:
        """Read pages.

        Args:
            field: ``k`` or ``v``, as the group names it.
            layer: the model's layer.
            table: int64 [B, M], pages in range.

        Returns:
            [B, M * page_tokens, heads, head_dim] in float32 or bfloat16, and the scale it still has to be
            multiplied by: attention applies it to its scores and its output, which are smaller.
        """
        rows = self._views[field, layer][table].flatten(1, 2)
        if self.dtype != "fp8":
            return rows, 1.0
        return _fp8_to_bf16(rows), self._places[field, layer].scale


def _fp8_to_bf16(bits: torch.Tensor) -> torch.Tensor:
    """uint8 e4m3 bits → bfloat16, exactly: sign to the top, exponent and mantissa in place, then the bias.

    Five times as fast on a CPU as torch's own conversion. The two NaN patterns become ±480; they are
    never stored for a finite row.
    """
    placed = bits.view(torch.int8).to(torch.int16).bitwise_left_shift_(4).bitwise_and_(~0x7800)
    return placed.view(torch.bfloat16).mul_(_FP8_IN_BF16)


def _one_each(field: KvField, scales: tuple[float, ...]) -> tuple[float, ...]:
    if len(scales) != len(field.layers):
        raise ServeError(f"{len(scales)} {field.name} scales for {len(field.layers)} layers", hint="Build the engine again.")
    return scales


def _head_dim(field: KvField, heads: int) -> int:
    elements, rest = divmod(field.row_bytes, DTYPE_BYTES[field.dtype])
    if rest or elements % heads:
        raise ServeError(f"a {field.name} row of {field.row_bytes} B does not divide into {heads} {field.dtype} heads")
    return elements // heads
