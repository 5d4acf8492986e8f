"""Paged attention in plain torch: any CPU, any head size, and the float32 reference."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .attention import LayerAttention
from .torch_batch import AttentionTables, TorchBatch, attention_tables
from .torch_pages import KvPages

__all__ = ["TorchPagedAttention"]


class TorchPagedAttention:
    """Gathers each row's pages into one tensor and attends to that."""

    name = "torch"

    def __init__(self, pages: KvPages) -> None:
        self._pages = pages

    def begin(self, batch: TorchBatch) -> LayerAttention:
        tables = attention_tables(batch, self._pages.page_tokens)
        # What a fresh page held before is masked where it is gathered, but a NaN among it would reach the sum.
        self._pages.clear(tables.fresh_pages)

        def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float) -> torch.Tensor:
            return self._attend(tables, layer, query, key, value, scaling)

        return attend

    def _attend(
        self,
        tables: AttentionTables,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        self._pages.write("k", layer, tables.slots, key.transpose(0, 1))
        self._pages.write("v", layer, tables.slots, value.transpose(0, 1))
        out = query.new_empty(query.shape[1], query.shape[0], query.shape[2])
        singles = len(tables.single_table)
        if singles:
            out[:singles] = self._singles(tables, layer, query[:, :singles].transpose(0, 1), scaling)
        for prompt in tables.prompts:
            k, k_factor = self._pages.gather("k", layer, prompt.pages)
            v, v_factor = self._pages.gather("v", layer, prompt.pages)
            tokens = prompt.end - prompt.start
            whole = tokens == prompt.context
            attended = F.scaled_dot_product_attention(
                query[None, :, prompt.start : prompt.end].to(k.dtype),
                k[:, : prompt.context].transpose(1, 2),
                v[:, : prompt.context].transpose(1, 2),
                attn_mask=None if whole else _causal(tokens, prompt.context),
                is_causal=whole,
                scale=scaling * k_factor,
                enable_gqa=True,
            )
            out[prompt.start : prompt.end] = attended[0].transpose(0, 1) * v_factor
        return out

    def _singles(self, tables: AttentionTables, layer: int, query: torch.Tensor, scaling: float) -> torch.Tensor:
        """Rows with one query each, [S, H, D], in one padded batch. Heads that share keys become query rows."""
        k, k_factor = self._pages.gather("k", layer, tables.single_table)
        v, v_factor = self._pages.gather("v", layer, tables.single_table)
        rows, heads, dim = query.shape
        attended = F.scaled_dot_product_attention(
            query.reshape(rows, k.shape[2], heads // k.shape[2], dim).to(k.dtype),
            k.transpose(1, 2),
            v.transpose(1, 2),
            attn_mask=tables.single_mask,
            scale=scaling * k_factor,
        )
        return attended.reshape(rows, heads, dim) * v_factor


def _causal(tokens: int, context: int) -> torch.Tensor:
    """A mask, bool [tokens, context]: the last ``tokens`` positions each attend to themselves and everything before."""
    return torch.ones(tokens, context, dtype=torch.bool).tril(context - tokens)
