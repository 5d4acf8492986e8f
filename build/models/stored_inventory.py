"""Every tensor of a model from its safetensors headers: weights together with the scales that belong to them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .checkpoint import Checkpoint, StoredTensor
from .exclusions import exclusion
from .packing import logical_shape, owner_of
from .parameters import Inventory, Parameter, in_tower, part_and_split
from .shape import ModelShape

__all__ = ["inventory_from_checkpoint"]

_NUMBER = re.compile(r"\.(\d+)(?=\.|$)")
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)(?:\.|$)")


def inventory_from_checkpoint(shape: ModelShape, checkpoint: Checkpoint) -> Inventory:
    """Group the tensors of a checkpoint by what they are: equal ones of all layers and experts are one parameter.

    Scales are counted with the weight they belong to. A head that is the embedding again is left out; no other byte is.
    """
    # Most modules are experts, and experts of a layer are alike: each kind is looked at once.
    alike: Counter[tuple[Any, ...]] = Counter()
    examples: dict[tuple[Any, ...], list[StoredTensor]] = {}
    for module, tensors in _by_module(checkpoint).items():
        found = _LAYER.search(module)
        layer = int(found[1]) if found else None
        kind: tuple[Any, ...] = (
            layer,
            _NUMBER.sub(".*", module),
            *[(tensor.dtype, tensor.shape, tensor.bytes) for tensor in tensors],
        )
        alike[kind] += 1
        examples.setdefault(kind, tensors)
    counted: dict[Parameter, Counter[int | None]] = defaultdict(Counter)
    for kind, number in alike.items():
        for parameter in _parameters(shape, kind[0], examples[kind]):
            counted[parameter][kind[0]] += parameter.copies * number
    parameters = tuple(_merged(counted))
    unknown = {parameter.name for parameter in parameters if parameter.part == "other" and not in_tower(parameter.name)}
    return Inventory(parameters, from_files=True, unknown=tuple(sorted(unknown)))


def _by_module(checkpoint: Checkpoint) -> dict[str, list[StoredTensor]]:
    """Tensors by the plain name of the weight that they make up or belong to."""
    found: dict[str, list[StoredTensor]] = {}
    for name, tensor in checkpoint.tensors.items():
        head, dot, last = name.rpartition(".")
        found.setdefault(f"{head}{dot}{owner_of(last)[0]}", []).append(tensor)
    return found


def _parameters(shape: ModelShape, layer: int | None, tensors: list[StoredTensor]) -> Iterable[Parameter]:
    """What the tensors of one module are: a weight with its scales, and scales that belong to no one weight."""
    weights = [tensor for tensor in tensors if not owner_of(tensor.name.rpartition(".")[2])[1]]
    scales = [tensor for tensor in tensors if tensor not in weights]
    if not weights:
        yield from (_parameter(shape, layer, scale.name, [scale], scale.shape) for scale in scales)
        return
    weight = weights[0]
    head, dot, last = weight.name.rpartition(".")
    name = f"{head}{dot}{owner_of(last)[0]}"
    dims, experts = logical_shape(weight, scales, shape)
    own = [scale for scale in scales if experts is None or scale.shape[:1] == (experts,)]
    parameter = _parameter(shape, layer, name, [*weights, *own], dims, experts)
    if not (shape.tied_embeddings and parameter.part == "head" and layer is None):
        yield parameter
        for scale in scales:
            if scale not in own:  # of all experts together
                yield replace(_parameter(shape, layer, scale.name, [scale], scale.shape), part="scale", split="none")


def _parameter(
    shape: ModelShape,
    layer: int | None,
    name: str,
    tensors: Iterable[StoredTensor],
    dims: tuple[int, ...],
    experts: int | None = None,
) -> Parameter:
    pattern, copies = _NUMBER.sub(".*", name), experts or 1
    part, split = part_and_split(pattern) or ("other", "none")
    return Parameter(
        pattern,
        dims,
        part,
        split,
        copies=copies,
        stored_bytes=sum(tensor.bytes for tensor in tensors) // copies,
        fused=experts is not None,
        mtp=pattern.startswith("mtp.") or (layer is not None and layer >= shape.layers and not in_tower(name)),
        excluded=exclusion(shape.quantization)(name),
    )


def _merged(counted: dict[Parameter, Counter[int | None]]) -> Iterable[Parameter]:
    for kind, layers in counted.items():
        by_copies: dict[int, list[int | None]] = defaultdict(list)
        for layer, copies in layers.items():
            by_copies[copies].append(layer)
        for copies, members in by_copies.items():
            numbers = tuple(sorted(layer for layer in members if layer is not None))
            yield replace(kind, layers=numbers, copies=copies)
