"""Whether a model can be cut as a recipe asks: heads, experts, layers, and INT4 groups within every shard."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..models.parameters import Parameter
from ..models.shape import ModelShape
from ..recipe import Recipe
from .problems import Alternative, Problem, set_to
from .scheme import as_stored, is_quantized
from .sharding import Parallel, ranks_of
from .support import allowed_groups

__all__ = ["choose_group", "group_fits", "nearest_ranks", "uncuttable"]

_GROUPS = (128, 64, 32, 16)
_GROUPED = ("int4_awq", "w4a8_awq", "nvfp4")
_MOST_RANKS = 64


def nearest_ranks(shape: ModelShape, asked: int) -> list[int]:
    """Other tensor parallelisms that a model's heads might allow, nearest first."""
    counts = {n for n in range(1, _MOST_RANKS + 1) if shape.heads % n == 0 or n & (n - 1) == 0}
    return sorted(counts - {asked}, key=lambda n: (abs(math.log2(n / asked)), n))


def group_fits(size: int, ranks: int, group: int) -> bool:
    """Whether each of ``ranks`` shards of an input dimension holds whole groups."""
    return size % ranks == 0 and (size // ranks) % group == 0


def choose_group(
    recipe: Recipe, shape: ModelShape, parameters: Sequence[Parameter], parallel: Parallel
) -> tuple[int | None, list[Problem]]:
    """The group size asked for or the largest that fits, and why it does not work when it does not.

    Of NVFP4 the group is given by the format: it is checked, and not returned as a choice.
    """
    kernels = allowed_groups(recipe, shape)
    if recipe.weights not in _GROUPED:
        return None, _stored_group(recipe, shape, kernels)
    linears = [parameter for parameter in parameters if is_quantized(parameter, recipe) and not parameter.mtp]
    usable = kernels or _GROUPS
    fitting = [group for group in usable if not _misfits(linears, parallel, group)]
    if recipe.weights == "nvfp4":
        wanted: int | None = usable[0] if fitting else None
        return None, [] if fitting else _group_problems(recipe, shape, linears, parallel, wanted, usable)
    if recipe.group_size == "auto":
        return (fitting[0], []) if fitting else (None, _group_problems(recipe, shape, linears, parallel, None, usable))
    group = recipe.group_size
    if group in fitting:
        return group, []
    return group, _group_problems(recipe, shape, linears, parallel, group, usable)


def _stored_group(recipe: Recipe, shape: ModelShape, kernels: tuple[int, ...] | None) -> list[Problem]:
    """Whether the target has a kernel for the groups of an input that stays as it is."""
    stored = shape.quantization.group_size if shape.quantization else None
    if recipe.weights != "as_is" or kernels is None or stored in (None, *kernels):
        return []
    message = f"the input has groups of {stored}; the {recipe.target} target's kernels take {_listed(kernels)} only"
    return [Problem(code="group_size", where="config.json", message=message)]


def _group_problems(
    recipe: Recipe,
    shape: ModelShape,
    linears: Sequence[Parameter],
    parallel: Parallel,
    group: int | None,
    usable: Sequence[int],
) -> list[Problem]:
    alternatives = _choices(recipe, shape, usable, group or usable[0])
    if group is not None and group not in usable and allowed_groups(recipe, shape) is not None:
        message = f"group_size {group}: the {recipe.target} target's {recipe.weights} kernels take {_listed(usable)} only"
        return [Problem(code="group_size", where="group_size", message=message, alternatives=alternatives)]
    misfits = _misfits(linears, parallel, usable[-1] if group is None else group)
    return [
        Problem(
            code="group_size",
            where=alike[0].name,
            message=f"{_names(alike)}: {_misfit_text(alike[0], parallel, group, usable)}",
            alternatives=alternatives,
        )
        for alike in _alike(misfits, parallel)
    ]


def uncuttable(recipe: Recipe, shape: ModelShape, parameters: Iterable[Parameter], parallel: Parallel) -> list[Problem]:
    """Everything that does not divide among the ranks and stages asked for; nothing is ever padded silently."""
    found: list[Problem] = []

    def refuse(code: str, message: str, values: Iterable[int]) -> None:
        found.append(Problem(code=code, where=code, message=message, alternatives=set_to(code, values)))

    tensor, ranks, others = parallel.tensor, parallel.attention, nearest_ranks(shape, parallel.tensor)
    if shape.latent is None and shape.heads % shape.kv_heads:
        message = f"{shape.heads} attention heads are no multiple of {shape.kv_heads} key/value heads"
        found.append(Problem(code="heads", where="config.json", message=message))
    if shape.heads % ranks:
        refuse("tensor_parallel", f"{shape.heads} attention heads do not divide among {ranks} ranks", others)
    elif shape.latent is None and shape.kv_heads % ranks and ranks % shape.kv_heads:
        message = (
            f"{shape.kv_heads} key/value heads neither divide among {ranks} ranks nor are repeated a whole number of times"
        )
        refuse("tensor_parallel", message, others)
    if tensor % parallel.expert:
        message = f"expert_parallel {parallel.expert} does not divide tensor_parallel {tensor}"
        refuse("expert_parallel", message, nearest_ranks(shape, parallel.expert))
    elif parallel.expert > 1 and shape.moe is None:
        refuse("expert_parallel", "the model has no experts", [1])
    elif shape.moe and shape.moe.experts % parallel.expert:
        message = f"{shape.moe.experts} experts do not divide among {parallel.expert} ranks"
        refuse("expert_parallel", message, nearest_ranks(shape, parallel.expert))
    if parallel.pipeline > shape.layers:
        refuse("pipeline_parallel", f"{parallel.pipeline} stages for {shape.layers} layers", [shape.layers, 1])
    uneven: dict[tuple[int, int, int], list[Parameter]] = {}
    blocks, stored = _stored_blocks(recipe, shape), as_stored(shape.quantization)
    for parameter in parameters:
        if parameter.mtp or parameter.part not in ("mlp", "routed_expert", "shared_expert") or parameter.split == "none":
            continue  # heads were looked at; words are padded by every runtime
        size, cut = parameter.shape[1 if parameter.split == "inputs" else 0], ranks_of(parameter, parallel)
        block = blocks if parameter.is_linear and stored.format_of(parameter).bits < 16 else 1
        if size % cut or (size // cut) % block:
            uneven.setdefault((size, cut, block), []).append(parameter)
    for (size, cut, block), alike in uneven.items():
        unit = f"whole blocks of {block}" if block > 1 else "equal shards"
        refuse("tensor_parallel", f"{_names(alike)}: {size} does not divide among {cut} ranks into {unit}", others)
    return found


def _stored_blocks(recipe: Recipe, shape: ModelShape) -> int:
    """Elements that share a scale in an input that stays as it is: a shard holds whole ones.

    MXFP4 experts are the exception: their kernels pad each shard to 128 by themselves.
    """
    if recipe.weights != "as_is" or shape.quantization is None or shape.quantization.format == "mxfp4":
        return 1
    return shape.quantization.group_size or 1


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


def _choices(recipe: Recipe, shape: ModelShape, groups: Sequence[int], near: int) -> tuple[Alternative, ...]:
    """(Group size, tensor parallel) pairs: those of the tensor parallelism asked for first, then the nearest."""
    asked = recipe.tensor_parallel
    nearest = sorted(groups, key=lambda group: abs(math.log2(group / near)))
    if recipe.weights == "nvfp4":
        return set_to("tensor_parallel", nearest_ranks(shape, asked), name_key=True)
    alone = [1] if asked == 1 else [asked, *nearest_ranks(shape, asked)]
    return tuple(
        Alternative(
            text=str(group) if asked == 1 else f"group {group} at tensor_parallel {ranks}",
            changes={"group_size": group, "tensor_parallel": ranks},
        )
        for ranks in alone
        for group in nearest
    )


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
