"""Which part of an engine a rank runs: its layers, and what it takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from .geometry import EngineGeometry

__all__ = ["RankPart", "page_bytes", "rank_parts"]


@dataclass(frozen=True)
class RankPart:
    """One rank of an engine. Its KV pages hold its own layers and heads only."""

    rank: int
    tp_rank: int
    pp_rank: int
    layers: range
    """Of the model."""
    is_first: bool
    """Whether it takes tokens; other pipeline ranks receive hidden states inside the engine."""
    is_last: bool
    """Whether it gives logits."""


def rank_parts(geometry: EngineGeometry) -> tuple[RankPart, ...]:
    """Every rank of an engine, in order.

    Without a partition of its own, layers are shared evenly and the first pipeline ranks get one more.
    """
    mapping = geometry.pretrained_config.mapping
    counts = mapping.pp_partition or _evenly(geometry.layers, mapping.pp_size)
    ends = list(accumulate(counts))
    return tuple(
        RankPart(
            rank=pp * mapping.tp_size + tp,
            tp_rank=tp,
            pp_rank=pp,
            layers=range(ends[pp] - counts[pp], ends[pp]),
            is_first=pp == 0,
            is_last=pp == mapping.pp_size - 1,
        )
        for pp in range(mapping.pp_size)
        for tp in range(mapping.tp_size)
    )


def page_bytes(geometry: EngineGeometry) -> int:
    """Bytes of a KV page on the rank that has most layers."""
    return max(len(part.layers) for part in rank_parts(geometry)) * 2 * geometry.block_bytes


def _evenly(layers: int, ranks: int) -> tuple[int, ...]:
    each, more = divmod(layers, ranks)
    return tuple(each + (rank < more) for rank in range(ranks))
