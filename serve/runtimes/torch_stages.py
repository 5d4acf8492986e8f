"""What a model's forward pass is made of, clocked from outside: attention, linears and the head. The model is unchanged."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from ..engine.stages import Stage, Stages
from .attention import Attention, LayerAttention
from .native_linears import NativeBf16Linear
from .torch_batch import TorchBatch
from .torch_linears import Int4Linear

__all__ = ["StagedAttention", "name_stages"]

_LINEARS = (nn.Linear, Int4Linear, NativeBf16Linear)


def name_stages(model: PreTrainedModel, stages: Stages) -> None:
    """Let ``stages`` hear of every linear of a model, and of its head. What is left of a forward pass is neither.

    Costs each call of a linear about a microsecond, so it is for profiles only.
    """
    head = model.get_output_embeddings()
    for module in model.modules():
        if module is head:
            _name(module, "lm_head", stages)
        elif isinstance(module, _LINEARS):
            _name(module, "linears", stages)


class StagedAttention:
    """An attention whose stage is heard: the tables of a step, and every layer.

    Args:
        attention: does the work.
        stages: hears of it.
    """

    def __init__(self, attention: Attention, stages: Stages) -> None:
        self.name = attention.name
        self._attention = attention
        self._stages = stages

    def begin(self, batch: TorchBatch) -> LayerAttention:
        with self._stages.stage("attention"):
            attend = self._attention.begin(batch)

        def staged(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float) -> torch.Tensor:
            with self._stages.stage("attention"):
                return attend(layer, query, key, value, scaling)

        return staged


def _name(module: nn.Module, stage: Stage, stages: Stages) -> None:
    forward = module.forward

    def staged(*args: Any, **keys: Any) -> Any:
        with stages.stage(stage):
            return forward(*args, **keys)

    module.forward = staged
