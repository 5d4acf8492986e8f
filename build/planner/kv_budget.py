"""How many KV pages a pool gets, from the memory key that a recipe gives or from its limits."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict

from ..recipe import Recipe
from .kv_layout import KvLayout

__all__ = ["KvBudget", "kv_budget"]


class KvBudget(BaseModel):
    """How many pages the pool gets, and which knob decided it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pages: int
    page_tokens: int
    bytes: int
    binding_limit: str

    @property
    def tokens(self) -> int:
        """Tokens the pool holds."""
        return self.pages * self.page_tokens


def kv_budget(recipe: Recipe, layout: KvLayout, *, max_seq_len: int, weight_bytes: int, free_memory: int) -> KvBudget:
    """Pages for the memory key that the recipe gives, or for its limits when it gives none.

    Args:
        recipe: memory keys, ``page_tokens`` and ``max_batch_size`` are read.
        layout: what a token leaves in the cache (one group).
        max_seq_len: tokens of the longest request.
        weight_bytes: bytes already taken by weights when the pool is allocated.
        free_memory: bytes free before anything is loaded.
    """
    page_bytes = layout.groups[0].page_bytes(recipe.page_tokens)
    if recipe.kv_cache_tokens is not None:
        pages, limit = recipe.kv_cache_tokens // recipe.page_tokens, "kv_cache_tokens"
    elif recipe.kv_cache_bytes is not None:
        pages, limit = recipe.kv_cache_bytes // page_bytes, "kv_cache_bytes"
    elif recipe.memory_fraction is not None:
        pages, limit = int(free_memory * recipe.memory_fraction - weight_bytes) // page_bytes, "memory_fraction"
    else:
        wanted = recipe.max_batch_size * math.ceil(max_seq_len / recipe.page_tokens)
        most = (free_memory - weight_bytes) // 2 // page_bytes
        pages, limit = (wanted, "max_batch_size x max_seq_len") if wanted <= most else (most, "half of free memory")
    pages = max(0, pages)
    return KvBudget(pages=pages, page_tokens=recipe.page_tokens, bytes=pages * page_bytes, binding_limit=limit)
