"""Is every tensor there that a family's layers have? A file that was cut or merged badly lacks one without any sign."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from .inventory import inventory_from_shape, is_known_family
from .parameters import part_and_split
from .shape import ModelShape

__all__ = ["missing_tensors"]

_IN_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.(.+)")
_SHOWN = 4


def missing_tensors(shape: ModelShape, names: Iterable[str]) -> Iterable[str]:
    """One line for each kind of tensor that is missing in some layers, and for each that is missing outside of them.

    Only of families that are known and of weights that are not quantized: quantizers rename. Left out are routed experts,
    which have several forms, layers for multi-token prediction, which may be cut off, and whole layers and heads, which
    are looked for elsewhere.

    Args:
        shape: the model's dimensions.
        names: tensors of the language model, experts may be left out.
    """
    if shape.quantization is not None or not is_known_family(shape):
        return
    stored: dict[int, set[str]] = defaultdict(set)
    outside = set()
    for name in names:
        if found := _IN_LAYER.search(name):
            stored[int(found[1])].add(found[2].replace("block_sparse_moe.", "mlp."))  # as Mixtral calls it
        else:
            outside.add(part_and_split(name))
    if not stored:
        return
    for parameter in inventory_from_shape(shape).parameters:
        if parameter.mtp or parameter.part in ("head", "other") or ".experts." in parameter.name:
            continue
        if not parameter.layers and (parameter.part, parameter.split) not in outside:
            yield f"there is no {parameter.name}"
        kind = parameter.name.partition("*.")[2]
        if without := [layer for layer in parameter.layers if layer in stored and kind not in stored[layer]]:
            yield f"there is no {kind} in {_layers(without)}"


def _layers(layers: list[int]) -> str:
    shown = ", ".join(map(str, layers[:_SHOWN])) + (f" and {len(layers) - _SHOWN} more" if len(layers) > _SHOWN else "")
    return f"layer{'s' if len(layers) > 1 else ''} {shown}"
