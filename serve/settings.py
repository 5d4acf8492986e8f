"""Settings of one engine process: the engine's recipe, with what `serve` and `generate` override."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from roundhouse.build.engine import Engine
from roundhouse.build.planner.kv_budget import KvBudget, kv_budget
from roundhouse.build.planner.kv_layout import layout_for
from roundhouse.build.planner.plan import Plan
from roundhouse.build.planner.support import traits_of
from roundhouse.build.recipe import GUARD_SAMPLE, Guard, Recipe, recipe_from
from roundhouse.errors import UsageError

from .options import OptionNames

__all__ = ["EngineSettings", "Overrides", "overrides_of", "require_room"]

_MEMORY_KEYS = ("memory_fraction", "kv_cache_bytes", "kv_cache_tokens")
_SERVING_KEYS = ("prefix_reuse", "max_waiting", "kernels")
_INPUT_DTYPE_BYTES = {"bf16": 2, "fp16": 2, "float32": 4}


class Overrides(BaseModel):
    """What may be changed when an engine is started; None keeps the recipe's value, or the default.

    ``prefix_reuse``, ``max_waiting`` and ``kernels`` are no recipe keys: they belong to serving alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    page_tokens: int | None = Field(default=None, ge=1)
    max_batch_size: int | None = Field(default=None, ge=1)
    max_seq_len: int | None = Field(default=None, ge=1)
    max_num_tokens: int | None = Field(default=None, ge=1)
    memory_fraction: float | None = Field(default=None, gt=0, le=1)
    kv_cache_bytes: int | None = Field(default=None, ge=1)
    kv_cache_tokens: int | None = Field(default=None, ge=1)
    guard: Guard | None = None
    guard_sample: float | None = Field(default=None, gt=0, le=1)
    prefix_reuse: bool | None = None
    max_waiting: int | None = Field(default=None, ge=1)
    kernels: Literal["auto", "native", "step", "torch"] | None = None


def overrides_of(**values: object) -> Overrides:
    """Overrides from the options of a command line.

    Raises:
        UsageError: naming the option that does not fit, or those that exclude each other.
    """
    names = OptionNames()
    sizes = [names.of(key) for key in _MEMORY_KEYS if values.get(key) is not None]
    if len(sizes) > 1:
        raise UsageError(f"{' and '.join(sizes)} exclude each other; keep one")
    try:
        return Overrides.model_validate(values)
    except ValidationError as error:
        raise names.misfit(error, whole="the options") from None


def require_room(weight_bytes: int, kv: KvBudget, free_memory: int) -> None:
    """See that weights and KV pages are no more than what is free, and that there is a page.

    Raises:
        UsageError: naming both sizes, and what decided how many pages there are.
    """
    if weight_bytes + kv.bytes > free_memory:
        raise UsageError(
            f"weights ({weight_bytes:,} B) and KV pages ({kv.bytes:,} B, from {kv.binding_limit}) "
            f"exceed the {free_memory:,} B of free memory",
            hint=f"Lower {kv.binding_limit}, or free memory." if kv.bytes else "Free memory, or run a smaller engine.",
        )
    if kv.tokens == 0:
        raise UsageError(f"no KV page fits ({kv.binding_limit})", hint="Raise the memory key, or lower max_seq_len.")


class EngineSettings(BaseModel):
    """What an engine process runs with.

    ``precision`` ``engine`` runs the engine as built; ``reference`` dequantizes weights to float32
    and stores float32 pages: slow, and the oracle that the fast path is compared with.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    page_tokens: int
    max_batch_size: int
    max_seq_len: int
    max_num_tokens: int
    guard: Guard
    guard_sample: float = GUARD_SAMPLE
    """With ``tags+content``: how likely each full page of a batch is compared with what was written into it, before each
    step; pages that are still being filled always are."""
    precision: Literal["engine", "reference"] = "engine"
    prefix_reuse: bool = True
    """Whether full pages are kept to be found by prompts that begin alike."""
    chunked_prompts: bool = True
    """Whether a prompt may run in several steps. Engines whose attention cannot continue a prompt need it off, and with it
    ``prefix_reuse``."""
    max_waiting: int = 1024
    """Answers that may wait in line; a request that comes to a full line is refused."""
    kernels: Literal["auto", "native", "step", "torch"] = "auto"
    """For attention and linears: native, plain torch, or native where it can be had; ``step``: native for all of a step. The
    reference is plain torch."""
    kv: KvBudget

    @property
    def longest_request(self) -> int:
        """Tokens of a request at most, prompt and answer: no more than the whole pool has room for."""
        return min(self.max_seq_len, self.kv.tokens)

    @classmethod
    def for_engine(
        cls,
        engine: Engine,
        overrides: Overrides,
        *,
        free_memory: int,
        precision: Literal["engine", "reference"] = "engine",
    ) -> EngineSettings:
        """Combine an engine's recipe with overrides and size the pool for this machine.

        Raises:
            UsageError: the combination is impossible, not one page fits, or weights and pages exceed
                free memory.
        """
        recipe = _override(engine.manifest.recipe, overrides)
        plan = engine.manifest.plan
        max_seq_len = recipe.max_seq_len or plan.max_seq_len
        if max_seq_len > plan.shape.max_positions:
            raise UsageError(f"max_seq_len {max_seq_len} is above the model's {plan.shape.max_positions} positions")
        reference = precision == "reference"
        layout = layout_for(plan.shape, "float32") if reference else plan.kv_layout
        weight_bytes = _float32_bytes(plan) if reference else plan.weight_bytes_per_gpu
        kv = kv_budget(
            recipe,
            layout,
            max_seq_len=max_seq_len,
            weight_bytes=weight_bytes,
            free_memory=free_memory,
            default_fraction=traits_of(recipe.target).memory_fraction,
        )
        require_room(weight_bytes, kv, free_memory)
        try:
            return cls(
                page_tokens=recipe.page_tokens,
                max_batch_size=recipe.max_batch_size,
                max_seq_len=max_seq_len,
                max_num_tokens=recipe.max_num_tokens,
                guard=recipe.guard,
                guard_sample=recipe.guard_sample or GUARD_SAMPLE,
                precision=precision,
                kv=kv,
                **overrides.model_dump(include=set(_SERVING_KEYS), exclude_none=True),
            )
        except ValidationError as error:
            raise UsageError(f"engine {engine.manifest.id} cannot run like this: {error.errors()[0]['msg']}") from None


def _float32_bytes(plan: Plan) -> int:
    """Bytes of the reference's weights, 4 a parameter. Parameters are counted in the input, as stored there."""
    return plan.base_bytes * 4 // _INPUT_DTYPE_BYTES[plan.shape.dtype]


def _override(recipe: Recipe, overrides: Overrides) -> Recipe:
    changes: dict[str, Any] = overrides.model_dump(exclude_none=True, exclude=set(_SERVING_KEYS))
    kept = recipe.model_dump()
    if any(key in changes for key in _MEMORY_KEYS):
        kept.update(dict.fromkeys(_MEMORY_KEYS))
    if "guard" in changes and changes["guard"] != recipe.guard:
        kept["guard_sample"] = None  # the recipe's sample belongs to the level that is overridden
    return recipe_from({**kept, **changes}, where="settings")
