"""Paged attention in plain torch, registered as an attention implementation of transformers.

Models run unchanged: transformers hands each layer's packed queries, keys and values to
:func:`paged_attention`, which stores keys and values in pages and attends only to what pages hold, the
current tokens included. So a token's output is the same whether its neighbours were cached just now or before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from .torch_batch import AttentionTables
from .torch_pages import KvPages

__all__ = ["ATTENTION", "PagedContext", "paged_attention", "register"]

ATTENTION = "roundhouse_paged"
"""The name in transformers. It has no mask function on purpose: transformers then builds no mask."""


@dataclass(frozen=True)
class PagedContext:
    """What a forward pass carries through the model to every layer's attention."""

    pages: KvPages
    tables: AttentionTables


def register() -> None:
    """Make :data:`ATTENTION` known to transformers. Registering again changes nothing."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, paged_attention)


def paged_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor | None,
    *,
    scaling: float,
    paged: PagedContext,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one layer over a packed batch.

    Args:
        module: the attention module; ``layer_idx`` says which layer's pages are meant.
        query: [1, H, T, D], rotated.
        key: [1, Hkv, T, D], rotated.
        value: [1, Hkv, T, D].
        _mask: always None, for no mask function is registered.
        scaling: factor on the scores.
        paged: the pages, and where this batch's keys and values lie in them.

    Returns:
        [1, T, H, D], and None for the weights.
    """
    layer = int(module.layer_idx)  # type: ignore[arg-type]  # set on every attention module of transformers
    pages, tables = paged.pages, paged.tables
    pages.write("k", layer, tables.slots, key[0].transpose(0, 1))
    pages.write("v", layer, tables.slots, value[0].transpose(0, 1))
    out = query.new_empty(query.shape[2], query.shape[1], query.shape[3])
    singles = len(tables.single_table)
    if singles:
        out[:singles] = _singles(query[0, :, :singles].transpose(0, 1), layer, paged, scaling)
    for prompt in tables.prompts:
        k, k_factor = pages.gather("k", layer, prompt.pages)
        v, v_factor = pages.gather("v", layer, prompt.pages)
        tokens = prompt.end - prompt.start
        whole = tokens == prompt.context
        attended = F.scaled_dot_product_attention(
            query[:, :, prompt.start : prompt.end].to(k.dtype),
            k[:, : prompt.context].transpose(1, 2),
            v[:, : prompt.context].transpose(1, 2),
            attn_mask=None if whole else _causal(tokens, prompt.context),
            is_causal=whole,
            scale=scaling * k_factor,
            enable_gqa=True,
        )
        out[prompt.start : prompt.end] = attended[0].transpose(0, 1) * v_factor
    return out[None], None


def _singles(query: torch.Tensor, layer: int, paged: PagedContext, scaling: float) -> torch.Tensor:
    """Rows with one query each, [S, H, D], in one padded batch. Heads that share keys become query rows."""
    k, k_factor = paged.pages.gather("k", layer, paged.tables.single_table)
    v, v_factor = paged.pages.gather("v", layer, paged.tables.single_table)
    rows, heads, dim = query.shape
    attended = F.scaled_dot_product_attention(
        query.reshape(rows, k.shape[2], heads // k.shape[2], dim).to(k.dtype),
        k.transpose(1, 2),
        v.transpose(1, 2),
        attn_mask=paged.tables.single_mask,
        scale=scaling * k_factor,
    )
    return attended.reshape(rows, heads, dim) * v_factor


def _causal(tokens: int, context: int) -> torch.Tensor:
    """A mask, bool [tokens, context]: the last ``tokens`` positions each attend to themselves and everything before."""
    return torch.ones(tokens, context, dtype=torch.bool).tril(context - tokens)
