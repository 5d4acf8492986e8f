"""What one token leaves in the KV cache, described once for the planner, the pool and transfer.

A layout is a list of groups. A group is a *lifetime* (how long a token's rows are kept), not a
tensor kind: full attention is one group with ``window=None``; a model that mixes sliding and full
attention has two. A group's fields say which tensors a token leaves there: ``k`` and ``v`` for
grouped-query attention, one ``latent`` for multi-head latent attention, ``index_key`` beside it in the layers
that own a sparse attention's indexer. Each group has its own pages, page tables and tags.

A page is one contiguous block holding ``page_tokens`` tokens of one group, all its fields and
layers, in the order ``[field][layer][token][row]``.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ..models.shape import ModelShape

__all__ = ["KvDtype", "KvField", "KvGroup", "KvLayout", "layout_for"]

KvDtype = Literal["float32", "bf16", "fp8"]
"""How a cache row is stored. ``float32`` exists for the reference mode only."""

DTYPE_BYTES: dict[KvDtype, int] = {"float32": 4, "bf16": 2, "fp8": 1}


class KvField(BaseModel):
    """One tensor that a token leaves in each of ``layers``; a row takes ``row_bytes`` bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    layers: tuple[int, ...]
    row_bytes: int
    dtype: KvDtype

    @property
    def bytes_per_token(self) -> int:
        """Bytes a token takes in this field, over all its layers."""
        return self.row_bytes * len(self.layers)


class KvGroup(BaseModel):
    """Fields that live equally long: for ever (``window=None``) or for ``window`` tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    window: int | None
    fields: tuple[KvField, ...]

    @property
    def bytes_per_token(self) -> int:
        """Bytes a token takes in this group."""
        return sum(field.bytes_per_token for field in self.fields)

    def page_bytes(self, page_tokens: int) -> int:
        """Bytes of one page of ``page_tokens`` tokens."""
        return self.bytes_per_token * page_tokens

    def pages_for(self, tokens: int, page_tokens: int) -> int:
        """Pages that a request of ``tokens`` tokens keeps at most; a window may lie across one page border more."""
        pages = math.ceil(tokens / page_tokens)
        if self.window is None:
            return pages
        return min(pages, math.ceil((self.window - 1) / page_tokens) + 1)


class KvLayout(BaseModel):
    """Every group of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    groups: tuple[KvGroup, ...]

    @property
    def bytes_per_token(self) -> int:
        """Bytes a token takes while it lives in every group."""
        return sum(group.bytes_per_token for group in self.groups)

    def request_bytes(self, tokens: int, page_tokens: int) -> int:
        """Bytes of the pages that a request of ``tokens`` tokens keeps."""
        return sum(group.pages_for(tokens, page_tokens) * group.page_bytes(page_tokens) for group in self.groups)


def layout_for(
    shape: ModelShape,
    dtype: KvDtype,
    *,
    kv_heads: int | None = None,
    layers: range | None = None,
    flashmla: bool = False,
) -> KvLayout:
    """What one token of a model leaves in the cache of one rank.

    Multi-head and grouped-query attention leave ``k`` and ``v`` rows of ``kv_heads * head_dim`` elements in every
    layer. Multi-head latent attention leaves one ``latent`` row, which is never stored expanded and which every rank
    keeps whole; with sparse attention the layers that own an indexer leave an FP8 ``index_key`` with its scale beside it.
    Layers with a window shorter than the model's longest sequence are a group of their own.

    Args:
        shape: the model.
        dtype: of keys, values and latents.
        kv_heads: heads on this rank; all of them when None.
        layers: layers on this rank; all of them when None.
        flashmla: FP8 latents as FlashMLA keeps them: a float32 scale for each 128 elements, and the rotary part in BF16.
    """
    mine = range(shape.layers) if layers is None else layers
    sliding = frozenset(shape.sliding_layers) if shape.has_windows else frozenset()
    full = tuple(layer for layer in mine if layer not in sliding)
    windowed = tuple(layer for layer in mine if layer in sliding)
    groups = []
    for window, members in ((None, full), (shape.sliding_window, windowed)):
        if members:
            fields = _fields(shape, dtype, members, shape.kv_heads if kv_heads is None else kv_heads, flashmla=flashmla)
            groups.append(KvGroup(window=window, fields=fields))
    return KvLayout(groups=tuple(groups))


def _fields(
    shape: ModelShape, dtype: KvDtype, layers: tuple[int, ...], kv_heads: int, *, flashmla: bool
) -> tuple[KvField, ...]:
    if shape.latent is None:
        row_bytes = kv_heads * shape.head_dim * DTYPE_BYTES[dtype]
        return tuple(KvField(name=name, layers=layers, row_bytes=row_bytes, dtype=dtype) for name in ("k", "v"))
    rank, rotary = shape.latent.kv_lora_rank, shape.latent.qk_rope_head_dim
    row_bytes = (rank + rotary) * DTYPE_BYTES[dtype]
    if flashmla and dtype == "fp8":
        row_bytes = _fp8_row_with_scales(rank) + 2 * rotary
    fields = [KvField(name="latent", layers=layers, row_bytes=row_bytes, dtype=dtype)]
    if shape.indexer is not None:
        owners = tuple(layer for layer in layers if layer in shape.indexer.layers)
        key_bytes = _fp8_row_with_scales(shape.indexer.head_dim)
        fields.append(KvField(name="index_key", layers=owners, row_bytes=key_bytes, dtype="fp8"))
    return tuple(fields)


def _fp8_row_with_scales(elements: int) -> int:
    """Bytes of an FP8 row with one float32 scale for each 128 elements."""
    return elements + elements // 128 * 4
