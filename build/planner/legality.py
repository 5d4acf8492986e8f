"""Everything that forbids a recipe: its target, its hardware, its input, how it is cut, and memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..hardware import Hardware
from ..models.parameters import Inventory
from ..models.shape import ModelShape
from ..models.shipped import SHAPE_PREFIX
from ..recipe import Recipe
from ..trtllm.linears import padded_sizes
from .buildable import unbuilt_reason
from .divisibility import choose_group, nearest_ranks, uncuttable
from .fit import Fit, fit_of, memory_problems
from .problems import Alternative, Problem, proved, set_to
from .settle import settle
from .sharding import parallel_of
from .support import unsupported

__all__ = ["Judgement", "judge"]


@dataclass(frozen=True)
class Judgement:
    """What fits of a recipe, and everything that forbids it."""

    fit: Fit
    """Of the recipe with everything decided that it left open."""
    group: int | None
    decided: tuple[str, ...]
    """A sentence for each decision."""
    problems: tuple[Problem, ...]
    """With alternatives that were judged themselves."""


def judge(recipe: Recipe, shape: ModelShape, inventory: Inventory, hardware: Hardware, request_tokens: int | None) -> Judgement:
    """Judge a recipe and, where it is refused, its alternatives."""
    fit, group, decided, problems = _judge(recipe, shape, inventory, hardware, request_tokens)
    is_built = unbuilt_reason(fit.recipe, shape) is None

    def codes_with(alternative: Alternative) -> set[str]:
        """Problems that are left when an alternative is taken: also that its pool holds not one request, or that it is not
        built, where what it is offered for is, or where it is other weights or another target.
        """
        other, kept = shape, inventory
        if alternative.unquantized:
            other = shape.model_copy(update={"quantization": None})
            kept = replace(inventory, parameters=tuple(replace(p, stored_bytes=None) for p in inventory.parameters))
        changed = recipe.model_copy(update=alternative.changes)
        room, *_, left = _judge(changed, other, kept, hardware, request_tokens)
        useless = fit.requests_that_fit(fit.request_tokens) > 0 >= room.requests_that_fit(room.request_tokens)
        asked = is_built or alternative.changes.keys() & {"weights", "target"}
        unbuilt = asked and not alternative.given and unbuilt_reason(room.recipe, other)
        return {problem.code for problem in left} | ({"room"} if useless else set()) | ({"unbuilt"} if unbuilt else set())

    problems = [_as_built(problem, fit.recipe, shape) for problem in problems]
    return Judgement(fit, group, tuple(decided), tuple(proved(problems, codes_with)))


def _as_built(problem: Problem, recipe: Recipe, shape: ModelShape) -> Problem:
    """A problem whose alternatives that this version does not quantize, and takes as they are, ask for such a checkpoint."""
    bare, as_is = shape.model_copy(update={"quantization": None}), recipe.model_copy(update={"weights": "as_is"})

    def worded(alternative: Alternative) -> Alternative:
        made = recipe.model_copy(update=alternative.changes)
        if not alternative.unquantized or unbuilt_reason(made, bare) is None or unbuilt_reason(as_is, bare) is not None:
            return alternative
        return alternative.model_copy(update={"text": f"{made.weights} from a checkpoint that is in it", "given": True})

    return problem.model_copy(update={"alternatives": tuple(map(worded, problem.alternatives))})


def _judge(
    recipe: Recipe, shape: ModelShape, inventory: Inventory, hardware: Hardware, request_tokens: int | None
) -> tuple[Fit, int | None, list[str], list[Problem]]:
    recipe, decided = settle(recipe, shape, hardware)
    parallel = parallel_of(recipe, shape)
    group, group_problems = choose_group(recipe, shape, inventory.parameters, parallel)
    fit = fit_of(recipe, shape, inventory, hardware, group, request_tokens)
    cut = [*group_problems, *uncuttable(recipe, shape, inventory.parameters, parallel)]
    problems = [
        *unsupported(recipe, shape, hardware),
        *_input_problems(recipe, shape, inventory),
        *(cut or _padded(recipe, shape, group)),
        *_too_long(shape, fit.max_seq_len),
        *memory_problems(fit),
    ]
    return fit, group, decided, problems


def _padded(recipe: Recipe, shape: ModelShape, group: int | None) -> list[Problem]:
    """What the engine builder would round up of INT4 linears: nothing is ever padded silently."""
    if recipe.target != "tensorrt" or recipe.weights != "int4_awq" or group is None or shape.moe or shape.latent:
        return []
    found = padded_sizes(shape, tensor=recipe.tensor_parallel, group=group)
    if not found:
        return []
    message = f"TensorRT-LLM's INT4 kernels take whole blocks on every rank: {'; '.join(found)}"
    fewer = set_to("tensor_parallel", nearest_ranks(shape, recipe.tensor_parallel), name_key=True)
    alternatives = (*set_to("group_size", [64] if group > 64 else [], name_key=True), *fewer)
    return [Problem(code="padded", where="group_size", message=message, alternatives=alternatives)]


def _too_long(shape: ModelShape, max_seq_len: int) -> list[Problem]:
    if max_seq_len <= shape.max_positions:
        return []
    message = f"max_seq_len {max_seq_len} is above the model's {shape.max_positions} positions"
    alternatives = set_to("max_seq_len", [shape.max_positions])
    return [Problem(code="max_seq_len", where="max_seq_len", message=message, alternatives=alternatives)]


def _input_problems(recipe: Recipe, shape: ModelShape, inventory: Inventory) -> list[Problem]:
    """What about the input itself forbids what the recipe wants to do with it."""
    if recipe.weights == "as_is":
        return []
    if shape.quantization is not None:
        message = f"the input is already quantized ({shape.quantization.name}): {recipe.weights} needs an unquantized copy"
        if recipe.model.startswith(SHAPE_PREFIX):
            message += f" ({recipe.model}@bf16 plans one)"
        return [Problem(code="input", where="config.json", message=message, alternatives=set_to("weights", ["as_is"]))]
    if recipe.weights == "bf16":
        return []
    return [
        Problem(
            code="fused",
            where=p.name,
            message=f"{p.name}: {p.copies} experts of {list(p.shape)} in one tensor are no plain linears: "
            f"they would stay at {(p.stored_bytes or 0) * p.count:,} B unquantized",
            alternatives=set_to("weights", ["bf16"]),
        )
        for p in inventory.parameters
        if p.fused or (len(p.shape) > 2 and (p.part != "other" or p.name in inventory.unknown))
    ]
