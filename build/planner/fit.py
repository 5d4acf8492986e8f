"""What fits: weights and KV pools of every GPU of a deployment, and what they leave room for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from ..hardware import Hardware
from ..models.parameters import Inventory, Parameter
from ..models.shape import ModelShape
from ..recipe import Recipe
from .decode import CONCURRENCIES, DecodeEstimate, DecodeModel, MeasuredRun, between_measured, estimates, price_per_million
from .divisibility import nearest_ranks
from .kv_budget import KvBudget, kv_budget
from .kv_layout import KvDtype, KvLayout, layout_for
from .problems import Problem, set_to
from .scheme import Scheme, as_stored, held_scheme
from .sharding import (
    Parallel,
    kv_heads_of,
    parallel_of,
    runtime_copies,
    stage_layers,
    stage_parameters,
    weight_bytes,
)
from .support import traits_of

__all__ = ["Fit", "StageMemory", "decode_rows", "fit_of", "memory_problems"]


class StageMemory(BaseModel):
    """The memory of each GPU of one pipeline stage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpus: int
    first_layer: int
    last_layer: int
    weight_bytes: int
    kv_bytes: int
    free_memory: int


@dataclass(frozen=True)
class Fit:
    """Weights and pools of every pipeline stage; all ranks of a stage are alike."""

    recipe: Recipe
    shape: ModelShape
    hardware: Hardware
    parallel: Parallel
    parameters: tuple[Parameter, ...]
    """What is held in memory, copies that the runtime makes included."""
    held: Scheme
    max_seq_len: int
    request_tokens: int
    ranges: tuple[range, ...]
    """Layers of each stage."""
    weights: tuple[int, ...]
    """Bytes of weights on each GPU of a stage."""
    fullest: int
    """The stage that has room for the fewest tokens: it decides for all."""
    layout: KvLayout
    """Of the fullest stage."""
    budget: KvBudget
    """Of the fullest stage."""

    @property
    def replicas(self) -> int:
        """How many ranks hold requests of their own."""
        return self.parallel.tensor if self.parallel.attention_data else 1

    @property
    def kv_tokens(self) -> int:
        """Tokens that the whole deployment holds."""
        return self.budget.tokens * self.replicas

    def stages(self) -> list[StageMemory]:
        """The memory of each stage: as many pages as the fullest has, of its own layers."""
        pages = {group.window: n for group, n in zip(self.layout.groups, self.budget.group_pages, strict=True)}
        found = []
        for layers, weights in zip(self.ranges, self.weights, strict=True):
            groups = _layout(self.recipe, self.shape, self.parallel, layers).groups
            found.append(
                StageMemory(
                    gpus=self.parallel.tensor,
                    first_layer=layers.start,
                    last_layer=layers.stop - 1,
                    weight_bytes=weights,
                    kv_bytes=sum(pages.get(g.window, 0) * g.page_bytes(self.budget.page_tokens) for g in groups),
                    free_memory=self.hardware.free_memory,
                )
            )
        return found

    def requests_that_fit(self, tokens: int) -> int:
        """Requests of this many tokens that find room at once, on all ranks together."""
        groups = zip(self.layout.groups, self.budget.group_pages, strict=True)
        return min(pages // group.pages_for(tokens, self.budget.page_tokens) for group, pages in groups) * self.replicas

    def worst_case_bytes(self) -> int:
        """KV bytes on one GPU when every request of a full batch is as long as it may be."""
        requests = math.ceil(self.recipe.max_batch_size / self.replicas)
        return requests * self.layout.request_bytes(self.max_seq_len, self.budget.page_tokens)

    @property
    def memory_fraction(self) -> float | None:
        """The fraction that sized the pools, or None when something else did."""
        if self.budget.binding_limit != "memory_fraction":
            return None
        return self.recipe.memory_fraction or traits_of(self.recipe.target).memory_fraction

    def tokens_as_bf16(self) -> int:
        """Tokens that the pool's bytes would hold as BF16 pages."""
        layout = _layout(self.recipe, self.shape, self.parallel, self.ranges[self.fullest], "bf16")
        keys = {"kv_cache_bytes": max(1, self.budget.bytes), "kv_cache_tokens": None, "memory_fraction": None}
        same = kv_budget(
            self.recipe.model_copy(update=keys),
            layout,
            max_seq_len=self.max_seq_len,
            weight_bytes=0,
            free_memory=self.budget.bytes,
            context=self.budget.at_context,
        )
        return same.tokens * self.replicas


def fit_of(
    recipe: Recipe,
    shape: ModelShape,
    inventory: Inventory,
    hardware: Hardware,
    group: int | None,
    request_tokens: int | None = None,
) -> Fit:
    """What fits of a settled recipe.

    Args:
        recipe: with nothing left open.
        shape: the model's dimensions.
        inventory: the model's tensors.
        hardware: one device of the deployment.
        group: the INT4 group size, or None.
        request_tokens: the length of request that layouts with windows are judged at; ``max_seq_len`` when None.
    """
    traits, parallel = traits_of(recipe.target), parallel_of(recipe, shape)
    held = as_stored(shape.quantization) if recipe.weights == "as_is" else held_scheme(recipe, group, traits)
    parameters = (*inventory.parameters, *runtime_copies(shape, traits.absorbed))
    max_seq_len = recipe.max_seq_len or shape.max_positions
    at = min(request_tokens or max_seq_len, max_seq_len)
    stages = min(parallel.pipeline, shape.layers)
    ranges = stage_layers(shape.layers, stages)
    layouts = [_layout(recipe, shape, parallel, layers) for layers in ranges]
    weights = [weight_bytes(stage_parameters(parameters, shape, layers), held, shape, parallel) for layers in ranges]
    budgets = [
        kv_budget(
            recipe,
            layout,
            max_seq_len=max_seq_len,
            weight_bytes=taken,
            free_memory=hardware.free_memory,
            context=at,
            default_fraction=traits.memory_fraction,
        )
        for layout, taken in zip(layouts, weights, strict=True)
    ]
    fullest = min(range(stages), key=lambda stage: (budgets[stage].tokens, -weights[stage]))
    return Fit(
        recipe=recipe,
        shape=shape,
        hardware=hardware,
        parallel=parallel,
        parameters=parameters,
        held=held,
        max_seq_len=max_seq_len,
        request_tokens=at,
        ranges=tuple(ranges),
        weights=tuple(weights),
        fullest=fullest,
        layout=layouts[fullest],
        budget=budgets[fullest],
    )


def memory_problems(fit: Fit) -> list[Problem]:
    """No room for a page, or pools larger than what is free; with wider spreads at which it might fit."""
    kv, free, weights = fit.budget, fit.hardware.free_memory, fit.weights[fit.fullest]
    if kv.tokens and weights + kv.bytes <= free:
        return []
    if weights > free:
        message = f"weights ({weights:,} B on each GPU) exceed the {free:,} B of free memory on {fit.hardware.name}"
    elif not kv.tokens:
        page = f"a page of each kind holds {kv.page_tokens} tokens and takes {fit.layout.bytes_per_token * kv.page_tokens:,} B"
        message = f"{kv.binding_limit} leaves no room for one page: {page}; weights take {weights:,} B of {free:,} B free"
    else:
        message = (
            f"weights ({weights:,} B) and KV pages ({kv.bytes:,} B) exceed the {free:,} B of free memory on {fit.hardware.name}"
        )
    wider = sorted(n for n in nearest_ranks(fit.shape, fit.parallel.tensor) if n > fit.parallel.tensor)
    alternatives = set_to("tensor_parallel", wider, name_key=True)
    return [Problem(code="memory", where=kv.binding_limit, message=message, alternatives=alternatives)]


def decode_rows(fit: Fit, context: int, price: float | None, measured: Sequence[MeasuredRun]) -> list[DecodeEstimate]:
    """Decode speed at the usual and the measured concurrencies that find room in pool and batch, and at the most that do.

    Where the speed of the memory is not known nothing is derived: there are rows of what was measured, and fitted ones between.
    """
    rows = _decode_rows(fit, context, measured)
    if price is None:
        return rows
    prices = [price_per_million(price, fit.parallel.gpus, row.tokens_per_s) for row in rows]
    return [row.model_copy(update={"price_per_million_tokens": each}) for row, each in zip(rows, prices, strict=True)]


def _decode_rows(fit: Fit, context: int, measured: Sequence[MeasuredRun]) -> list[DecodeEstimate]:
    most = min(fit.requests_that_fit(context), fit.recipe.max_batch_size)
    if fit.hardware.bandwidth is None:
        return [row for row in between_measured((*CONCURRENCIES, most), context, measured) if row.concurrency <= most]
    model = DecodeModel(
        parameters=(*(p for p in fit.parameters if p.part != "absorbed" and not p.mtp), *runtime_copies(fit.shape, "both")),
        scheme=fit.held,
        shape=fit.shape,
        parallel=fit.parallel,
        layout=_layout(fit.recipe, fit.shape, fit.parallel, range(fit.shape.layers)),
        bandwidth=fit.hardware.bandwidth,
    )
    told = {*CONCURRENCIES, *(row.concurrency for row in measured if row.speaks_for(context)), most}
    return estimates(model, sorted(n for n in told if 0 < n <= most), context, measured)


def _layout(recipe: Recipe, shape: ModelShape, parallel: Parallel, layers: range, dtype: KvDtype | None = None) -> KvLayout:
    return layout_for(
        shape,
        dtype or recipe.kv_cache,
        kv_heads=kv_heads_of(shape, parallel),
        layers=layers,
        flashmla=recipe.kv_layout == "flashmla-fp8",
    )
