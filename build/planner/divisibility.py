"""Whether a model can be cut as a recipe asks: heads, experts, layers, and INT4 groups within every shard."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..models.parameters import Parameter
from ..models.shape import ModelShape
from ..recipe import Recipe
from .scheme import as_stored, is_quantized
from .sharding import Parallel, ranks_of
from .support import Problem, allowed_groups

__all__ = ["RANKS", "choose_group", "group_fits", "uncuttable"]

_GROUPS = (128, 64, 32, 16)
RANKS = (1, 2, 4, 8, 16, 32)
_SHOWN = 6
"""Alternatives that are listed at most: the nearest."""


def group_fits(size: int, ranks: int, group: int) -> bool:
    """Whether each of ``ranks`` shards of an input dimension holds whole groups."""
    return size % ranks == 0 and (size // ranks) % group == 0


def choose_group(recipe: Recipe, parameters: Sequence[Parameter], parallel: Parallel) -> tuple[int | None, list[Problem]]:
    """The INT4 group size asked for or the largest that fits, and why it does not work when it does not."""
    if recipe.weights not in ("int4_awq", "w4a8_awq"):
        return None, []
    linears = [parameter for parameter in parameters if is_quantized(parameter, recipe) and not parameter.mtp]
    kernels = allowed_groups(recipe)
    usable = kernels or _GROUPS
    if recipe.group_size == "auto":
        fitting = [group for group in usable if not _misfits(linears, parallel, group)]
        if fitting:
            return fitting[0], []
        group = None
        misfits = _misfits(linears, parallel, usable[-1])
    else:
        group = recipe.group_size
        if kernels is not None and group not in kernels:
            message = f"group_size {group}: the {recipe.target} target's {recipe.weights} kernels take {_listed(kernels)} only"
            legal = _choices(linears, parallel, usable, group)
            return group, [Problem(code="group_size", where="group_size", message=message, legal_alternatives=legal)]
        misfits = _misfits(linears, parallel, group)
    legal = _choices(linears, parallel, usable, group or usable[0])
    return group, [
        Problem(
            code="group_size",
            where=alike[0].name,
            message=f"{_names(alike)}: {_misfit_text(alike[0], parallel, group, usable)}",
            legal_alternatives=legal[:_SHOWN],
        )
        for alike in _alike(misfits, parallel)
    ]


def uncuttable(recipe: Recipe, shape: ModelShape, parameters: Iterable[Parameter], parallel: Parallel) -> list[Problem]:
    """Everything that does not divide among the ranks and stages asked for; nothing is ever padded silently."""
    found: list[Problem] = []

    def refuse(code: str, message: str, legal: Iterable[int]) -> None:
        asked: int = getattr(recipe, code)
        near = sorted(legal, key=lambda n: abs(math.log2(n / asked)))
        found.append(Problem(code=code, where=code, message=message, legal_alternatives=tuple(map(str, near))))

    tensor, ranks = parallel.tensor, parallel.attention
    heads_fit = [n for n in RANKS if _heads_fit(shape, n)]
    if shape.heads % ranks:
        refuse("tensor_parallel", f"{shape.heads} attention heads do not divide among {ranks} ranks", heads_fit)
    elif shape.latent is None and not _kv_heads_fit(shape, ranks):
        message = (
            f"{shape.kv_heads} key/value heads neither divide among {ranks} ranks nor are repeated a whole number of times"
        )
        refuse("tensor_parallel", message, heads_fit)
    if tensor % parallel.expert:
        message = f"expert_parallel {parallel.expert} does not divide tensor_parallel {tensor}"
        refuse("expert_parallel", message, [n for n in RANKS if tensor % n == 0])
    elif parallel.expert > 1 and shape.moe is None:
        refuse("expert_parallel", "the model has no experts", [1])
    elif shape.moe and shape.moe.experts % parallel.expert:
        message = f"{shape.moe.experts} experts do not divide among {parallel.expert} ranks"
        legal = [n for n in RANKS if tensor % n == 0 and shape.moe.experts % n == 0]
        refuse("expert_parallel", message, legal)
    if parallel.pipeline > shape.layers:
        refuse("pipeline_parallel", f"{parallel.pipeline} stages for {shape.layers} layers", [1, shape.layers])
    uneven: dict[tuple[int, int, int], list[Parameter]] = {}
    blocks, stored = _stored_blocks(recipe, shape), as_stored(shape.quantization)
    for parameter in parameters:
        if parameter.mtp or parameter.part not in ("mlp", "routed_expert") or parameter.split == "none":
            continue  # heads were looked at; words are padded by every runtime; shared experts go to fewer ranks instead
        size, cut = parameter.shape[1 if parameter.split == "inputs" else 0], ranks_of(parameter, parallel)
        block = blocks if parameter.is_linear and stored.format_of(parameter).bits < 16 else 1
        if size % cut or (size // cut) % block:
            uneven.setdefault((size, cut, block), []).append(parameter)
    for (size, cut, block), alike in uneven.items():
        unit = f"whole blocks of {block}" if block > 1 else "equal shards"
        message = f"{_names(alike)}: {size} does not divide among {cut} ranks into {unit}"
        refuse("tensor_parallel", message, [n for n in RANKS if size % n == 0 and (size // n) % block == 0])
    return found


def _stored_blocks(recipe: Recipe, shape: ModelShape) -> int:
    """Elements that share a scale in an input that stays as it is: a shard holds whole ones.

    MXFP4 experts are the exception: their kernels pad each shard to 128 by themselves.
    """
    if recipe.weights != "as_is" or shape.quantization is None or shape.quantization.format == "mxfp4":
        return 1
    return shape.quantization.group_size or 1


def _heads_fit(shape: ModelShape, ranks: int) -> bool:
    return shape.heads % ranks == 0 and (shape.latent is not None or _kv_heads_fit(shape, ranks))


def _kv_heads_fit(shape: ModelShape, ranks: int) -> bool:
    return shape.kv_heads % ranks == 0 or ranks % shape.kv_heads == 0


def _misfits(linears: Iterable[Parameter], parallel: Parallel, group: int) -> list[Parameter]:
    return [linear for linear in linears if not group_fits(linear.shape[1], _input_ranks(linear, parallel), group)]


def _alike(linears: Iterable[Parameter], parallel: Parallel) -> list[list[Parameter]]:
    """Linears by the size of their inputs and how these are cut: what is wrong with one is wrong with all of them."""
    found: dict[tuple[int, int], list[Parameter]] = {}
    for linear in linears:
        found.setdefault((linear.shape[1], _input_ranks(linear, parallel)), []).append(linear)
    return list(found.values())


def _names(alike: Sequence[Parameter]) -> str:
    """Names of tensors, the part that they have in common once."""
    first, *others = (parameter.name.removesuffix(".weight").rpartition(".") for parameter in alike)
    block = f"{first[0]}."
    return f"{block}{', '.join([first[2], *(last if head == first[0] else f'{head}.{last}' for head, _, last in others)])}"


def _input_ranks(linear: Parameter, parallel: Parallel) -> int:
    return ranks_of(linear, parallel) if linear.split == "inputs" else 1


def _choices(linears: Sequence[Parameter], parallel: Parallel, groups: Sequence[int], near: int) -> tuple[str, ...]:
    """Legal (group size, tensor parallel) pairs: those of the tensor parallelism asked for first, then the nearest."""
    pairs = [
        (group, ranks)
        for ranks in RANKS[: max(4, RANKS.index(parallel.tensor) + 1 if parallel.tensor in RANKS else 4)]
        for group in groups
        if ranks % parallel.expert == 0 and not _misfits(linears, replace(parallel, tensor=ranks), group)
    ]
    asked = parallel.tensor
    pairs.sort(key=lambda pair: (abs(math.log2(pair[1] / asked)), abs(math.log2(pair[0] / near))))
    return tuple(f"group {group} at tensor_parallel {ranks}" if asked > 1 else str(group) for group, ranks in pairs
                 if asked > 1 or ranks == 1)  # fmt: skip


def _misfit_text(linear: Parameter, parallel: Parallel, group: int | None, usable: Sequence[int]) -> str:
    ranks, size = _input_ranks(linear, parallel), linear.shape[1]
    shard = f"{size} inputs / tensor_parallel {ranks} = {size / ranks:g}" if ranks > 1 else f"input size {size}"
    if group is None:
        several = f"none of the group sizes {_listed(usable)} divides it"
        tried = several if len(usable) > 1 else f"group size {usable[0]} does not divide it"
        smaller = [small for small in _GROUPS if small not in usable and group_fits(size, ranks, small)]
        if smaller:
            tried += f" ({smaller[0]} does, and this target has no kernel for it)"
        return f"{shard}: {tried}"
    if ranks > 1:
        return f"{shard}, which is not a whole number of groups of {group} ({(size / ranks) % group:g} over)"
    return f"{shard} % group_size {group} = {size % group}"


def _listed(values: Iterable[int]) -> str:
    return ", ".join(str(value) for value in values)
