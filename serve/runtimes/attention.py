"""How a runtime attends: the contract, and how transformers' models come to it. Models run unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch

from .torch_batch import TorchBatch

__all__ = ["ATTENTION", "Attention", "LayerAttention", "register"]

ATTENTION = "roundhouse_paged"
"""The name in transformers. It has no mask function on purpose: transformers then builds no mask."""

LayerAttention = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor, float], torch.Tensor]
"""One layer of a step that was begun: layer, query [H, T, D], key and value [Hkv, T, D], factor on the scores → [T, H, D].

Queries and keys are rotated. Keys and values are stored in their pages first; attention then reads
nothing but pages, so a token's output is the same whether its neighbours were cached just now or before.
"""


class Attention(Protocol):
    """Paged attention on one pool of pages."""

    name: str

    def begin(self, batch: TorchBatch) -> LayerAttention:
        """Take a batch that the guard let pass. Page numbers come from its page table and from nowhere else."""
        ...


def register() -> None:
    """Make :data:`ATTENTION` known to transformers. Registering again changes nothing."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, _attend)


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor | None,
    *,
    scaling: float,
    paged: LayerAttention,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one layer over a packed batch, as transformers calls it.

    Args:
        module: the attention module; ``layer_idx`` says which layer's pages are meant.
        query: [1, H, T, D]
        key: [1, Hkv, T, D]
        value: [1, Hkv, T, D]
        _mask: always None, for no mask function is registered.
        scaling: factor on the scores.
        paged: the step's attention, handed through the model.

    Returns:
        [1, T, H, D], and None for the weights.
    """
    layer = int(module.layer_idx)  # type: ignore[arg-type]  # set on every attention module of transformers
    return paged(layer, query[0], key[0], value[0], scaling)[None], None
