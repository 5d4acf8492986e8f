"""Every tensor of a model from its safetensors headers: weights together with the scales that belong to them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from .checkpoint import Checkpoint, StoredTensor
from .packing import PLAIN_ENDINGS, logical_shape, owner_of
from .parameters import Inventory, Parameter, in_tower, part_and_split
from .shape import ModelShape

__all__ = ["inventory_from_checkpoint"]

_NUMBER = re.compile(r"\.(\d+)(?=\.|$)")
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)(?:\.|$)")


def inventory_from_checkpoint(shape: ModelShape, checkpoint: Checkpoint) -> Inventory:
    """Group the tensors of a checkpoint by what they are: equal ones of all layers and experts are one parameter.

    Scales are counted with the weight they belong to. A head that is the embedding again is left out; no other byte is.
    """
    kinds: dict[Parameter, Counter[int | None]] = defaultdict(Counter)
    unknown: set[str] = set()
    for name, (weight, *scales) in _by_module(checkpoint).items():
        pattern = _NUMBER.sub(".*", name)
        known = part_and_split(pattern)
        if shape.tied_embeddings and known is not None and known[0] == "head" and "layers" not in pattern:
            continue
        if known is None:
            unknown.add(pattern)
        part, split = known or ("other", "none")
        dims, experts = logical_shape(weight, scales, shape)
        copies = experts or 1
        layer = _layer(name)
        mtp = pattern.startswith("mtp.") or (layer is not None and layer >= shape.layers and not in_tower(name))
        own = [scale for scale in scales if experts is None or scale.shape[:1] == (experts,)]
        stored = sum(tensor.bytes for tensor in (weight, *own)) // copies
        key = Parameter(pattern, dims, part, split, stored_bytes=stored, fused=experts is not None, mtp=mtp)
        kinds[key][layer] += copies
        for scale in scales:
            if scale not in own:  # of all experts together
                pattern = _NUMBER.sub(".*", scale.name)
                kinds[Parameter(pattern, scale.shape, "scale", "none", stored_bytes=scale.bytes, mtp=mtp)][layer] += 1
    return Inventory(tuple(_merged(kinds)), from_files=True, unknown=tuple(sorted(unknown)))


def _by_module(checkpoint: Checkpoint) -> dict[str, list[StoredTensor]]:
    """Tensors by the plain name of the weight they make up, the weight itself first; a scale without one is by itself."""
    scales = {name: owner for name in checkpoint.tensors if (owner := owner_of(name)) is not None}
    found: dict[str, list[StoredTensor]] = {}
    for name, tensor in checkpoint.tensors.items():
        if name not in scales:
            found.setdefault(_plain_name(name), []).append(tensor)
    for name, owner in scales.items():
        found.setdefault(owner if owner in found else name, []).append(checkpoint.tensors[name])
    return found


def _plain_name(name: str) -> str:
    head, _, last = name.rpartition(".")
    return f"{head}.weight" if last in PLAIN_ENDINGS else name.removesuffix("_blocks")


def _layer(name: str) -> int | None:
    found = _LAYER.search(name)
    return int(found[1]) if found else None


def _merged(kinds: dict[Parameter, Counter[int | None]]) -> Iterable[Parameter]:
    for kind, layers in kinds.items():
        by_copies: dict[int, list[int | None]] = defaultdict(list)
        for layer, copies in layers.items():
            by_copies[copies].append(layer)
        for copies, members in by_copies.items():
            numbers = tuple(sorted(layer for layer in members if layer is not None))
            yield replace(kind, layers=numbers, copies=copies)
