"""One step of paged attention: random inputs, what the native kernels make of them, and what float64 says."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from roundhouse.plugins.native_attention import LayerPlace, NativeAttention, PoolGeometry

__all__ = ["Case", "Row", "random_case"]

Float64Array = np.ndarray[Any, np.dtype[np.float64]]
_LARGEST = 448.0


@dataclass(frozen=True)
class Row:
    """A row that runs ``count`` tokens, behind ``before`` tokens that its pages hold already."""

    count: int
    before: int

    @property
    def context(self) -> int:
        return self.before + self.count


@dataclass(frozen=True)
class Case:
    """One layer of one step. The layer is the second of three, so that its neighbours in a page show stray writes."""

    heads: int
    kv_heads: int
    head_dim: int
    page_tokens: int
    dtype: Literal["bf16", "fp8"]
    rows: tuple[Row, ...]
    buffer: torch.Tensor
    """uint8 [P, page bytes], as it is before the step."""
    page_table: torch.Tensor
    query: torch.Tensor
    """[H, T, D], in the strides of a linear's output, like key and value."""
    key: torch.Tensor
    value: torch.Tensor
    scales: tuple[float, float]
    scaling: float

    LAYERS = 3
    LAYER = 1

    @property
    def geometry(self) -> PoolGeometry:
        size = self.page_tokens * self.kv_heads * self.head_dim * (1 if self.dtype == "fp8" else 2)
        places = {n: LayerPlace(n * size, (self.LAYERS + n) * size, *self.scales) for n in range(self.LAYERS)}
        return PoolGeometry(self.page_tokens, self.kv_heads, self.head_dim, self.dtype, places)

    @property
    def query_start(self) -> torch.Tensor:
        return torch.tensor([0, *np.cumsum([row.count for row in self.rows])], dtype=torch.int32)

    @property
    def context_len(self) -> torch.Tensor:
        return torch.tensor([row.context for row in self.rows], dtype=torch.int32)

    def run(self, kernels: ctypes.CDLL) -> tuple[torch.Tensor, torch.Tensor]:
        """The output [T, H, D], and the pages after the step."""
        buffer = self.buffer.clone()
        step = NativeAttention(kernels, buffer, self.geometry).step(self.page_table, self.query_start, self.context_len)
        return step.attend(self.LAYER, self.query, self.key, self.value, self.scaling), buffer

    def only(self, row: int) -> Case:
        """The step of one row alone."""
        start, end = self.query_start[row : row + 2].tolist()
        packed = {name: getattr(self, name)[:, start:end] for name in ("query", "key", "value")}
        return replace(self, rows=(self.rows[row],), page_table=self.page_table[row : row + 1].contiguous(), **packed)

    def expected(self) -> Float64Array:
        """float64 [T, H, D]: softmax over what the pages hold after the step, this step's rows among it."""
        keys, values = (self._held(name, field) for field, name in enumerate(("key", "value")))
        query = self.query.double().numpy()
        out = np.zeros((query.shape[1], self.heads, self.head_dim))
        group = self.heads // self.kv_heads
        for row, (start, shape) in enumerate(zip(self.query_start.tolist(), self.rows, strict=False)):
            for token in range(shape.count):
                for head in range(self.heads):
                    seen = slice(0, shape.before + token + 1)
                    scores = keys[row][seen, head // group] @ query[head, start + token] * self.scaling
                    weights = np.exp(scores - scores.max())
                    out[start + token, head] = weights / weights.sum() @ values[row][seen, head // group]
        return out

    def _held(self, name: str, field: int) -> list[Float64Array]:
        """By row, float64 [context, Hkv, D]: one field's rows in the order of positions."""
        scale = self.scales[field]
        stored = _stored(getattr(self, name).transpose(0, 1), self.dtype, scale)
        pages = self.buffer.view(-1, 2, self.LAYERS, self.buffer.shape[1] // 2 // self.LAYERS)[:, field, self.LAYER]
        held = _meant(pages.contiguous(), self.dtype, scale).reshape(len(pages), self.page_tokens, self.kv_heads, -1)
        rows = []
        for row, (start, shape) in enumerate(zip(self.query_start.tolist(), self.rows, strict=False)):
            positions = np.arange(shape.before)
            cells = self.page_table[row].numpy()[positions // self.page_tokens]
            fresh = stored[start : start + shape.count]
            rows.append(np.concatenate((held[cells, positions % self.page_tokens], fresh)))
        return rows


def random_case(
    seed: int,
    *,
    kv_heads: int,
    group: int,
    head_dim: int,
    page_tokens: int,
    dtype: Literal["bf16", "fp8"],
    tokens: torch.dtype,
    rows: tuple[Row, ...],
) -> Case:
    """Random numbers in pages that lie in random order; every byte that no row may read is part of a NaN."""
    random = torch.Generator().manual_seed(seed)
    columns = [-(-row.context // page_tokens) for row in rows]
    pages = sum(columns) + 2
    scales = (0.037, 0.21) if dtype == "fp8" else (1.0, 1.0)
    order = torch.randperm(pages, generator=random).int()
    table = torch.full((len(rows), max(columns) + 1), -1, dtype=torch.int32)
    shape = (pages, 2, Case.LAYERS, page_tokens, kv_heads, head_dim)
    held = torch.full(shape, float("nan"))
    taken = 0
    for row, (count, shown) in enumerate(zip(columns, rows, strict=True)):
        table[row, :count] = order[taken : taken + count]
        taken += count
        for position in range(shown.before):
            cell = held[table[row, position // page_tokens], :, Case.LAYER, position % page_tokens]
            cell.copy_(torch.randn(cell.shape, generator=random))
    for field, scale in enumerate(scales):
        held[:, field] /= scale
    stored = held.to(torch.float8_e4m3fn if dtype == "fp8" else torch.bfloat16).view(torch.uint8).reshape(pages, -1)

    def rows_of(heads: int) -> torch.Tensor:
        packed = torch.randn(sum(row.count for row in rows), heads * head_dim, generator=random).to(tokens)
        return packed.view(len(packed), heads, head_dim).transpose(0, 1)

    return Case(
        heads=kv_heads * group,
        kv_heads=kv_heads,
        head_dim=head_dim,
        page_tokens=page_tokens,
        dtype=dtype,
        rows=rows,
        buffer=stored.contiguous(),
        page_table=table,
        query=rows_of(kv_heads * group),
        key=rows_of(kv_heads),
        value=rows_of(kv_heads),
        scales=scales,
        scaling=head_dim**-0.5,
    )


def _stored(rows: torch.Tensor, dtype: str, scale: float) -> Float64Array:
    if dtype == "bf16":
        return rows.bfloat16().double().numpy()
    return (rows.float() / scale).clamp(-_LARGEST, _LARGEST).to(torch.float8_e4m3fn).double().numpy() * scale


def _meant(stored: torch.Tensor, dtype: str, scale: float) -> Float64Array:
    view = stored.view(torch.float8_e4m3fn if dtype == "fp8" else torch.bfloat16)
    return view.double().numpy() * scale
