"""Recipe + model shape + hardware → bytes, pages and legality. Pure: reads no weights, spends nothing.

Byte counts are exact for what this package writes and holds: `build` compares the written
checkpoint with :attr:`Plan.checkpoint_bytes` to the byte, and the torch runtime holds
:attr:`Plan.weight_bytes`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from roundhouse.errors import PlanRefusedError

from ..hardware import Hardware
from ..models.checkpoint import Checkpoint
from ..models.shape import ModelShape
from ..recipe import Recipe
from .kv_budget import KvBudget, kv_budget
from .kv_layout import KvLayout, layout_for
from .support import Problem, unsupported
from .weight_bytes import checkpoint_bytes, held_bytes, is_quantized, is_tied_head

__all__ = ["Plan", "make_plan", "require_legal"]

GROUP_SIZES = (128, 64, 32, 16)


class Plan(BaseModel):
    """What a recipe will take and whether it is legal."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    shape: ModelShape
    hardware: Hardware
    group_size: int | None
    """Input channels that share an INT4 scale, or None when weights are not INT4."""
    max_seq_len: int
    base_bytes: int
    """Bytes of the input's tensors as stored."""
    checkpoint_bytes: int
    """Bytes of the tensors that `build` will write."""
    weight_bytes: int
    """Bytes of weights that the runtime holds in memory."""
    kv_layout: KvLayout
    kv_bytes_per_token: int
    kv: KvBudget
    kv_tokens_bf16: int
    """Tokens that the same bytes would hold as BF16 pages."""
    quantized_modules: int
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]

    @property
    def legal(self) -> bool:
        """Whether `build` will take this recipe."""
        return not self.problems


def make_plan(recipe: Recipe, shape: ModelShape, checkpoint: Checkpoint, hardware: Hardware) -> Plan:
    """Plan a recipe. Never raises for an illegal one: see :attr:`Plan.problems`."""
    problems = unsupported(recipe, shape)
    if shape.quantized_as and recipe.weights != "as_is":
        problems.append(_already_quantized(shape))
    group, group_problems = _group_size(recipe, checkpoint)
    problems += group_problems + _fused_weights(recipe, checkpoint)
    max_seq_len = recipe.max_seq_len or shape.max_positions
    if max_seq_len > shape.max_positions:
        message = f"max_seq_len {max_seq_len} is above the model's {shape.max_positions} positions"
        problems.append(
            Problem(code="max_seq_len", where="max_seq_len", message=message, legal_alternatives=(str(shape.max_positions),))
        )
    layout = layout_for(shape, recipe.kv_cache)
    weights = [tensor for tensor in checkpoint.tensors.values() if not is_tied_head(tensor, shape)]
    weight_bytes = sum(held_bytes(tensor, recipe, group) for tensor in weights)
    kv = kv_budget(recipe, layout, max_seq_len=max_seq_len, weight_bytes=weight_bytes, free_memory=hardware.free_memory)
    if not kv.pages:
        page = f"a page holds {kv.page_tokens} tokens and takes {layout.bytes_per_token * kv.page_tokens:,} B"
        message = f"{kv.binding_limit} leaves no room for one page: {page}"
        problems.append(Problem(code="memory", where=kv.binding_limit, message=message))
    if weight_bytes + kv.bytes > hardware.free_memory:
        message = (
            f"weights ({weight_bytes:,} B) and KV pages ({kv.bytes:,} B) exceed the "
            f"{hardware.free_memory:,} B of free memory on {hardware.name}"
        )
        problems.append(Problem(code="memory", where=kv.binding_limit, message=message))
    return Plan(
        shape=shape,
        hardware=hardware,
        group_size=group,
        max_seq_len=max_seq_len,
        base_bytes=checkpoint.tensor_bytes,
        checkpoint_bytes=checkpoint_bytes(recipe, shape, weights, group),
        weight_bytes=weight_bytes,
        kv_layout=layout,
        kv_bytes_per_token=layout.bytes_per_token,
        kv=kv,
        kv_tokens_bf16=kv.bytes // layout_for(shape, "bf16").groups[0].page_bytes(kv.page_tokens) * kv.page_tokens,
        quantized_modules=sum(is_quantized(tensor, recipe) for tensor in checkpoint.tensors.values()),
        problems=tuple(problems),
        warnings=tuple(_warnings(shape, max_seq_len, kv)),
    )


def require_legal(plan: Plan) -> None:
    """Refuse an illegal plan.

    Raises:
        PlanRefusedError: with every reason and the legal alternatives.
    """
    if plan.legal:
        return
    reasons = tuple(
        problem.message + (f" (legal: {', '.join(problem.legal_alternatives)})" if problem.legal_alternatives else "")
        for problem in plan.problems
    )
    raise PlanRefusedError(
        "the plan refuses this recipe:\n" + "\n".join(f"  - {reason}" for reason in reasons), reasons=reasons
    )


def _already_quantized(shape: ModelShape) -> Problem:
    return Problem(
        code="input",
        where="config.json",
        message=f"the input is already quantized ({shape.quantized_as}); give the unquantized model",
    )


def _fused_weights(recipe: Recipe, checkpoint: Checkpoint) -> list[Problem]:
    """Weights that no linear layer holds (experts fused into one tensor): they would silently stay 16-bit."""
    if recipe.weights == "bf16":
        return []
    return [
        Problem(
            code="fused",
            where=tensor.name,
            message=f"{tensor.name} {list(tensor.shape)} is no plain linear: it would stay at {tensor.bytes:,} B unquantized",
            legal_alternatives=("bf16",),
        )
        for tensor in checkpoint.tensors.values()
        if len(tensor.shape) > 2
    ]


def _group_size(recipe: Recipe, checkpoint: Checkpoint) -> tuple[int | None, list[Problem]]:
    """The INT4 group size asked for or found, and why it does not work when it does not."""
    if recipe.weights != "int4_awq":
        return None, []
    inputs = {t.shape[1]: t.name for t in checkpoint.tensors.values() if is_quantized(t, recipe)}
    legal = [group for group in GROUP_SIZES if all(size % group == 0 for size in inputs)]
    if recipe.group_size == "auto":
        if legal:
            return legal[0], []
        sizes = ", ".join(f"{name} {size}" for size, name in sorted(inputs.items()))
        return None, [Problem(code="group_size", where="weights", message=f"no INT4 group size divides all inputs ({sizes})")]
    group = recipe.group_size
    alternatives = tuple(str(size) for size in sorted(legal, key=lambda size: abs(size - group)))
    problems = [
        Problem(
            code="group_size",
            where=name,
            message=f"{name}: input size {size} % group_size {group} = {size % group}",
            legal_alternatives=alternatives,
        )
        for size, name in sorted(inputs.items())
        if size % group
    ]
    return group, problems


def _warnings(shape: ModelShape, max_seq_len: int, kv: KvBudget) -> list[str]:
    found = []
    if shape.dtype != "bf16":
        found.append(f"the input is {shape.dtype} ({shape.dtype_from}); it is converted to bf16")
    if 0 < kv.tokens < max_seq_len:
        found.append(f"the pool holds {kv.tokens:,} tokens, less than one request of max_seq_len {max_seq_len:,}")
    return found
