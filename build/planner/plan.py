"""Recipe + model + hardware → bytes, pages, legality and speed. Pure: reads no weights, spends nothing.

Byte counts are exact for what this package writes and holds: `build` compares the written
checkpoint with :attr:`Plan.checkpoint_bytes` to the byte, and the torch runtime holds
:attr:`Plan.weight_bytes_per_gpu`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from roundhouse.errors import PlanRefusedError

from ..hardware import Hardware
from ..models.parameters import Inventory
from ..models.shape import ModelShape
from ..recipe import Recipe
from .assumptions import assumptions_of, warnings_of
from .decode import DecodeEstimate, MeasuredRun
from .fit import StageMemory, decode_rows
from .kv_layout import KvLayout
from .legality import judge
from .problems import Problem
from .scheme import as_stored, is_quantized, written_scheme
from .support import support_warnings

__all__ = ["Plan", "make_plan", "require_legal"]

_USUAL_CONTEXT = 8192
"""Tokens of a request that decode speed is told for when nobody says how long requests are."""


class Plan(BaseModel):
    """What a recipe will take and whether it is legal."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipe: Recipe
    """With everything decided that the recipe left open."""
    shape: ModelShape
    hardware: Hardware
    gpus: int
    """Devices of one deployment (1 for a CPU)."""
    group_size: int | None
    """Input channels that share an INT4 scale, or None when weights are not INT4."""
    max_seq_len: int
    request_tokens: int
    """The length of request that ``requests_that_fit`` is told for."""
    parameters: int
    """Of the model, multi-token-prediction layers left out."""
    base_bytes: int
    """Bytes of the input's tensors as stored; as 16-bit numbers when there are no files."""
    checkpoint_bytes: int
    """Bytes of the tensors that `build` will write, or of the input as it is."""
    weight_bytes_per_gpu: int
    """Bytes of weights that the runtime holds on the fullest GPU."""
    kv_layout: KvLayout
    """Of the fullest GPU."""
    kv_bytes_per_token: int
    """On one GPU."""
    kv_bytes: int
    """Of the pool on one GPU."""
    page_tokens: int
    pages: int
    """On one GPU, of all groups."""
    kv_tokens: int
    """Tokens that the whole deployment holds."""
    kv_tokens_context: int | None
    """The length of request that ``kv_tokens`` is for, where windows make it depend on that; else None."""
    kv_tokens_bf16: int
    """Tokens that the same bytes would hold as BF16 pages."""
    requests_that_fit: int
    worst_case_bytes: int
    """KV bytes on one GPU when ``max_batch_size`` requests reach ``max_seq_len`` tokens each."""
    worst_case_fits: bool
    """Whether a full batch of the longest requests finds room at once."""
    binding_limit: str
    """What decided how large the pool is."""
    stages: tuple[StageMemory, ...]
    quantized_modules: int
    decode: tuple[DecodeEstimate, ...]
    decode_context: int
    """Tokens of each request that the decode rows are for."""
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]

    @property
    def legal(self) -> bool:
        """Whether the target runs this recipe on this hardware."""
        return not self.problems


def make_plan(
    recipe: Recipe,
    shape: ModelShape,
    inventory: Inventory,
    hardware: Hardware,
    *,
    request_tokens: int | None = None,
    price_per_gpu_hour: float | None = None,
    measured: Sequence[MeasuredRun] = (),
) -> Plan:
    """Plan a recipe. Never raises for an illegal one: see :attr:`Plan.problems`.

    Args:
        recipe: what the user wants; open keys are decided by :func:`~.settle.settle`.
        shape: the model's dimensions.
        inventory: the model's tensors, from headers or from its dimensions.
        hardware: one device of the deployment.
        request_tokens: how long requests are; ``max_seq_len`` when None.
        price_per_gpu_hour: in any currency; decode rows then carry a price.
        measured: decode rows of the same engine on the same hardware, from the history. Without ``request_tokens`` decode
            speed is then told for requests as they were measured.
    """
    judged = judge(recipe, shape, inventory, hardware, request_tokens)
    recipe, fit, group = judged.fit.recipe, judged.fit, judged.group
    stages, layout, kv = fit.stages(), fit.layout, fit.budget
    usual = measured[0].context if measured else _USUAL_CONTEXT
    decode_context = min(request_tokens or usual, fit.max_seq_len)
    decode = decode_rows(fit, decode_context, price_per_gpu_hour, measured)
    return Plan(
        recipe=recipe,
        shape=shape,
        hardware=hardware,
        gpus=fit.parallel.gpus,
        group_size=group,
        max_seq_len=fit.max_seq_len,
        request_tokens=fit.request_tokens,
        parameters=inventory.elements,
        base_bytes=inventory.stored_bytes,
        checkpoint_bytes=_checkpoint_bytes(recipe, shape, inventory, group),
        weight_bytes_per_gpu=max(stage.weight_bytes for stage in stages),
        kv_layout=layout,
        kv_bytes_per_token=layout.bytes_per_token,
        kv_bytes=kv.bytes,
        page_tokens=kv.page_tokens,
        pages=kv.pages,
        kv_tokens=fit.kv_tokens,
        kv_tokens_context=kv.at_context,
        kv_tokens_bf16=fit.tokens_as_bf16(),
        requests_that_fit=fit.requests_that_fit(fit.request_tokens),
        worst_case_bytes=fit.worst_case_bytes(),
        worst_case_fits=fit.requests_that_fit(fit.max_seq_len) >= recipe.max_batch_size,
        binding_limit=kv.binding_limit,
        stages=tuple(stages),
        quantized_modules=sum(p.count for p in inventory.parameters if is_quantized(p, recipe) and not p.mtp),
        decode=tuple(decode),
        decode_context=decode_context,
        problems=judged.problems,
        warnings=(*support_warnings(recipe, shape, hardware), *warnings_of(fit)),
        assumptions=(*judged.decided, *assumptions_of(fit, inventory, decode, decode_context)),
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


def _checkpoint_bytes(recipe: Recipe, shape: ModelShape, inventory: Inventory, group: int | None) -> int:
    written = as_stored(shape.quantization) if recipe.weights == "as_is" else written_scheme(recipe, group)
    total = sum(written.bytes_of(parameter, parameter.shape) * parameter.count for parameter in inventory.parameters)
    own_kv_scales = recipe.kv_cache == "fp8" and recipe.weights != "as_is"
    return total + (2 * 4 * shape.layers if own_kv_scales else 0)
