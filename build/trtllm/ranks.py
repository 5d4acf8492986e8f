"""The ranks of a TensorRT-LLM engine: which layers, heads and rows each one holds."""

from __future__ import annotations

from dataclasses import dataclass

from ..models.shape import ModelShape
from ..planner.sharding import stage_layers

__all__ = ["Rank", "ranks"]


@dataclass(frozen=True)
class Rank:
    """One rank of an engine: ``tensor_rank`` of the ``tensor`` that share a layer, in stage ``stage`` of ``stages``."""

    tensor: int
    tensor_rank: int
    stages: int
    stage: int
    layers: range
    """Of the model; in the rank's own checkpoint they are counted from 0."""

    @property
    def index(self) -> int:
        """Its number among all ranks: those of a stage are neighbours, as upstream's ``Mapping`` has it."""
        return self.stage * self.tensor + self.tensor_rank

    @property
    def embeds(self) -> bool:
        """Whether it turns tokens into rows, as the first stage does."""
        return self.stage == 0

    @property
    def answers(self) -> bool:
        """Whether it makes logits, as the last stage does."""
        return self.stage == self.stages - 1

    def share(self, size: int) -> range:
        """Its rows of ``size`` that divide among the ranks of a stage."""
        each = size // self.tensor
        return range(self.tensor_rank * each, (self.tensor_rank + 1) * each)

    def kv_heads(self, shape: ModelShape) -> range:
        """Its key/value heads: a share of them, or one that it has together with other ranks when there are more ranks."""
        if shape.kv_heads % self.tensor == 0:
            return self.share(shape.kv_heads)
        head = self.tensor_rank * shape.kv_heads // self.tensor
        return range(head, head + 1)


def ranks(shape: ModelShape, *, tensor: int, pipeline: int) -> tuple[Rank, ...]:
    """Every rank, in order. The first stages get the layers that are over, as upstream's ``torch.tensor_split`` gives them."""
    return tuple(
        Rank(tensor, tensor_rank, pipeline, stage, layers)
        for stage, layers in enumerate(stage_layers(shape.layers, pipeline))
        for tensor_rank in range(tensor)
    )
