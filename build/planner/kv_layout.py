"""What one token leaves in the KV cache, described once for the planner, the pool and transfer.

A layout is a list of groups. A group is a *lifetime* (how long a token's rows are kept), not a
tensor kind: full attention is one group with ``window=None``; a model that mixes sliding and full
attention has two. A group's fields say which tensors a token leaves there: ``k`` and ``v`` for
grouped-query attention, one ``latent`` for multi-head latent attention. Each group has its own
pages, page tables and tags.

A page is one contiguous block holding ``page_tokens`` tokens of one group, all its fields and
layers, in the order ``[field][layer][token][row]``.
"""

from __future__ import annotations

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


class KvLayout(BaseModel):
    """Every group of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    groups: tuple[KvGroup, ...]

    @property
    def bytes_per_token(self) -> int:
        """Bytes a token takes while it lives in every group."""
        return sum(group.bytes_per_token for group in self.groups)


def layout_for(shape: ModelShape, dtype: KvDtype) -> KvLayout:
    """What one token of a model leaves in the cache, all of it for as long as the request lives.

    Multi-head and grouped-query attention leave ``k`` and ``v`` rows of ``kv_heads * head_dim`` elements
    in every layer; multi-head latent attention leaves one ``latent`` row, which is never stored expanded.
    """
    layers = tuple(range(shape.layers))
    names, elements = (("k", "v"), shape.kv_heads * shape.head_dim) if shape.latent is None else (("latent",), shape.latent)
    row_bytes = elements * DTYPE_BYTES[dtype]
    fields = tuple(KvField(name=name, layers=layers, row_bytes=row_bytes, dtype=dtype) for name in names)
    return KvLayout(groups=(KvGroup(window=None, fields=fields),))
