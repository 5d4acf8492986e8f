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
from ..models.shipped import SHAPE_PREFIX
from ..recipe import Recipe
from .assumptions import assumptions_of, warnings_of
from .decode import DecodeEstimate, MeasuredRun
from .divisibility import choose_group, uncuttable
from .fit import Fit, StageMemory, decode_rows, fit_of, memory_problems
from .kv_layout import KvLayout
from .scheme import as_stored, is_quantized, written_scheme
from .settle import settle
from .sharding import parallel_of
from .support import Problem, support_warnings, takes_as_is, unbuilt_reason, unsupported

__all__ = ["Plan", "make_plan", "require_buildable", "require_legal"]

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
        measured: decode rows of the same engine on the same hardware, from the history.
    """
    recipe, assumptions = settle(recipe, shape, hardware)
    parallel = parallel_of(recipe, shape)
    group, group_problems = choose_group(recipe, inventory.parameters, parallel)
    fit = fit_of(recipe, shape, inventory, hardware, group, request_tokens)
    problems = [
        *_with_room(unsupported(recipe, shape, hardware), fit, inventory),
        *_input_problems(recipe, shape, inventory, hardware),
        *group_problems,
        *uncuttable(recipe, shape, inventory.parameters, parallel),
        *_too_long(shape, fit.max_seq_len),
        *memory_problems(fit, inventory),
    ]
    stages, layout, kv = fit.stages(), fit.layout, fit.budget
    decode_context = min(request_tokens or _USUAL_CONTEXT, fit.max_seq_len)
    decode = decode_rows(fit, decode_context, price_per_gpu_hour, measured)
    return Plan(
        recipe=recipe,
        shape=shape,
        hardware=hardware,
        gpus=parallel.gpus,
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
        problems=tuple(problems),
        warnings=(*support_warnings(recipe, shape), *warnings_of(fit)),
        assumptions=(*assumptions, *assumptions_of(fit, inventory, decode, decode_context)),
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


def require_buildable(recipe: Recipe) -> None:
    """Refuse a target that is planned by this version and not built.

    Raises:
        PlanRefusedError: with the reason.
    """
    if reason := unbuilt_reason(recipe.target):
        raise PlanRefusedError(f"target {recipe.target}: {reason}", reasons=(reason,))


def _checkpoint_bytes(recipe: Recipe, shape: ModelShape, inventory: Inventory, group: int | None) -> int:
    written = as_stored(shape.quantization) if recipe.weights == "as_is" else written_scheme(recipe, group)
    total = sum(written.bytes_of(parameter, parameter.shape) * parameter.count for parameter in inventory.parameters)
    own_kv_scales = recipe.kv_cache == "fp8" and recipe.weights != "as_is"
    return total + (2 * 4 * shape.layers if own_kv_scales else 0)


def _with_room(problems: list[Problem], fit: Fit, inventory: Inventory) -> list[Problem]:
    """Leave out weights that are legal and leave no room for one request, as long as others are left."""
    found = []
    for problem in problems:
        if problem.code == "weights":
            names = [name for name in problem.legal_alternatives if _has_room(name.split()[0], fit, inventory)]
            problem = problem.model_copy(update={"legal_alternatives": tuple(names) or problem.legal_alternatives})
        found.append(problem)
    return found


def _has_room(weights: str, fit: Fit, inventory: Inventory) -> bool:
    recipe = fit.recipe.model_copy(update={"weights": weights, "group_size": "auto"})
    group, problems = choose_group(recipe, inventory.parameters, fit.parallel)
    other = fit_of(recipe, fit.shape, inventory, fit.hardware, group, fit.request_tokens)
    return not problems and other.requests_that_fit(fit.request_tokens) > 0


def _too_long(shape: ModelShape, max_seq_len: int) -> list[Problem]:
    if max_seq_len <= shape.max_positions:
        return []
    message = f"max_seq_len {max_seq_len} is above the model's {shape.max_positions} positions"
    legal = (str(shape.max_positions),)
    return [Problem(code="max_seq_len", where="max_seq_len", message=message, legal_alternatives=legal)]


def _input_problems(recipe: Recipe, shape: ModelShape, inventory: Inventory, hardware: Hardware) -> list[Problem]:
    """What about the input itself forbids what the recipe wants to do with it."""
    if recipe.weights == "as_is":
        return []
    if shape.quantization is not None:
        message = f"the input is already quantized ({shape.quantization.name}): {recipe.weights} needs an unquantized copy"
        if recipe.model.startswith(SHAPE_PREFIX):
            message += f" ({recipe.model}@bf16 plans one)"
        legal = ("as_is",) if takes_as_is(recipe.target, shape, hardware) else ()
        return [Problem(code="input", where="config.json", message=message, legal_alternatives=legal)]
    if recipe.weights == "bf16":
        return []
    return [
        Problem(
            code="fused",
            where=p.name,
            message=f"{p.name}: {p.copies} experts of {list(p.shape)} in one tensor are no plain linears: "
            f"they would stay at {(p.stored_bytes or 0) * p.count:,} B unquantized",
            legal_alternatives=("bf16",),
        )
        for p in inventory.parameters
        if p.fused or (len(p.shape) > 2 and (p.part != "other" or p.name in inventory.unknown))
    ]
