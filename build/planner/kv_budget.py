"""How many KV pages a pool gets, from the memory key that a recipe gives or from its limits."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from ..recipe import Recipe
from .kv_layout import KvLayout

__all__ = ["KvBudget", "kv_budget"]


class KvBudget(BaseModel):
    """How many pages the pool gets on one GPU, and which knob decided it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pages: int
    """Of all groups together."""
    group_pages: tuple[int, ...]
    page_tokens: int
    bytes: int
    tokens: int
    """Tokens the pool holds; with windows, tokens of requests of ``at_context`` tokens each."""
    at_context: int | None
    """The length of request that ``tokens`` is for, or None when it is the same for every length."""
    binding_limit: str


def kv_budget(
    recipe: Recipe,
    layout: KvLayout,
    *,
    max_seq_len: int,
    weight_bytes: int,
    free_memory: int,
    context: int | None = None,
    default_fraction: float | None = None,
) -> KvBudget:
    """Pages for the memory key that the recipe gives, or for its limits when it gives none.

    Args:
        recipe: memory keys, ``page_tokens`` and ``max_batch_size`` are read.
        layout: what a token leaves in the cache.
        max_seq_len: tokens of the longest request.
        weight_bytes: bytes already taken by weights when the pool is allocated.
        free_memory: bytes free before anything is loaded.
        context: tokens of the request that layouts with windows are judged at; the longest one when None.
        default_fraction: the memory fraction when the recipe gives no memory key; None: as many pages as
            ``max_batch_size`` longest requests need, at most half of what weights leave free.
    """
    page, at = recipe.page_tokens, context or max_seq_len
    fraction = recipe.memory_fraction or default_fraction
    if recipe.kv_cache_tokens is not None:
        tokens = recipe.kv_cache_tokens
        at = min(at, tokens)  # fewer tokens than one request may have are those of one shorter request
        budget = tokens * layout.bytes_per_token if _is_linear(layout) else tokens * layout.request_bytes(at, page) // at
        return _pool(layout, page, at, budget, "kv_cache_tokens")
    if recipe.kv_cache_bytes is not None:
        return _pool(layout, page, at, recipe.kv_cache_bytes, "kv_cache_bytes")
    if fraction is not None:
        return _pool(layout, page, at, int(free_memory * fraction) - weight_bytes, "memory_fraction")
    wanted = recipe.max_batch_size * layout.request_bytes(max_seq_len, page)
    most = (free_memory - weight_bytes) // 2
    if wanted <= most:
        return _pool(layout, page, max_seq_len, wanted, "max_batch_size x max_seq_len")
    return _pool(layout, page, at, most, "half of free memory")


def _pool(layout: KvLayout, page: int, context: int, budget: int, limit: str) -> KvBudget:
    """Share a budget of bytes among the groups as requests of ``context`` tokens need them."""
    whole = layout.request_bytes(context, page)
    pages = [max(0, budget * group.pages_for(context, page) // whole) for group in layout.groups]
    if _is_linear(layout):
        tokens, at_context = pages[0] * page, None
    else:
        tokens = min(n * context // g.pages_for(context, page) for n, g in zip(pages, layout.groups, strict=True))
        at_context = context
    return KvBudget(
        pages=sum(pages),
        group_pages=tuple(pages),
        page_tokens=page,
        bytes=sum(n * group.page_bytes(page) for n, group in zip(pages, layout.groups, strict=True)),
        tokens=tokens,
        at_context=at_context,
        binding_limit=limit,
    )


def _is_linear(layout: KvLayout) -> bool:
    """Whether every token costs the same whatever the length of its request."""
    return len(layout.groups) == 1 and layout.groups[0].window is None
