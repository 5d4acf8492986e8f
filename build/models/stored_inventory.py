"""Every tensor of a model from its safetensors headers: weights together with the scales that belong to them."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import replace

from .checkpoint import Checkpoint, StoredTensor
from .parameters import Inventory, Parameter, part_and_split
from .shape import ModelShape

__all__ = ["inventory_from_checkpoint"]

_WEIGHTS = ("weight", "weight_packed", "qweight")
_COMPANIONS = re.compile(
    r"\.(weight_scale|weight_scale_inv|weight_scale_2|weight_global_scale|weight_shape|weight_zero_point|input_scale"
    r"|input_global_scale|pre_quant_scale|qzeros|scales|g_idx|k_scale|v_scale)$"
)
_NUMBER = re.compile(r"\.(\d+)(?=\.|$)")
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)(?:\.|$)")


def inventory_from_checkpoint(shape: ModelShape, checkpoint: Checkpoint) -> Inventory:
    """Group the tensors of a checkpoint by what they are: equal ones of all layers and experts are one parameter.

    Scales are counted with the weight they belong to. A head that is the embedding again is left out.
    """
    kinds: dict[Parameter, Counter[int | None]] = defaultdict(Counter)
    unknown: set[str] = set()
    for name, tensors in _by_module(checkpoint).items():
        if shape.tied_embeddings and name == "lm_head.weight":
            continue
        dims, copies = _logical_shape(name, tensors, shape)
        pattern = _NUMBER.sub(".*", name)
        known = part_and_split(pattern)
        if known is None:
            unknown.add(pattern)
        found = _LAYER.search(name)
        layer = int(found[1]) if found else None
        stored = sum(tensor.bytes for tensor in tensors)
        part, split = known or ("other", "none")
        mtp = (layer is not None and layer >= shape.layers and part != "other") or pattern.startswith("mtp.")
        fused = len(tensors[0].shape) > 2
        key = Parameter(pattern, dims, part, split, stored_bytes=stored // copies, fused=fused, mtp=mtp)
        kinds[key][layer] += copies
    return Inventory(tuple(_merged(kinds)), from_files=True, unknown=tuple(sorted(unknown)))


def _by_module(checkpoint: Checkpoint) -> dict[str, list[StoredTensor]]:
    """Tensors by the plain name of the weight they make up, the weight itself first."""
    found: dict[str, list[StoredTensor]] = {}
    companions: list[StoredTensor] = []
    for tensor in checkpoint.tensors.values():
        if _COMPANIONS.search(tensor.name) or tensor.name.endswith("_scales"):
            companions.append(tensor)
        else:
            found.setdefault(_plain_name(tensor.name), []).append(tensor)
    for tensor in companions:
        owner = _plain_name(_COMPANIONS.sub(".weight", tensor.name).removesuffix("_scales"))
        found.setdefault(owner, []).append(tensor)
    return found


def _plain_name(name: str) -> str:
    head, _, last = name.rpartition(".")
    return f"{head}.weight" if last in _WEIGHTS else name.removesuffix("_blocks")


def _logical_shape(name: str, tensors: list[StoredTensor], shape: ModelShape) -> tuple[tuple[int, ...], int]:
    """(outputs, inputs) of the 16-bit weight behind a stored one, and how many experts are fused into it."""
    weight = tensors[0]
    dims, last = weight.shape, weight.name.rpartition(".")[2]
    if last == "weight_packed" and weight.dtype == "I32":
        return (dims[0], dims[1] * 8), 1
    if last == "qweight":  # AWQ packs outputs, GPTQ packs inputs; eight to an int32
        gptq = any(tensor.name.endswith(".g_idx") for tensor in tensors)
        return ((dims[1], dims[0] * 8) if gptq else (dims[1] * 8, dims[0])), 1
    if last.endswith("_blocks"):
        return (dims[1], math.prod(dims[2:]) * 2), dims[0]
    if weight.dtype == "U8" and len(dims) == 2:  # ModelOpt: INT4 packs outputs, NVFP4 packs inputs
        nvfp4 = any(tensor.name.endswith("weight_scale_2") for tensor in tensors)
        return ((dims[0], dims[1] * 2) if nvfp4 else (dims[0] * 2, dims[1])), 1
    if len(dims) == 3 and ".experts" in name:
        rows, columns = dims[1:]
        into = shape.hidden if "down" in name else None
        turned = rows == shape.hidden and columns != shape.hidden if into is None else rows != shape.hidden
        return ((columns, rows) if turned else (rows, columns)), dims[0]
    if len(dims) == 2 and ".experts" in name and name.endswith("_bias"):
        return dims[1:], dims[0]
    return dims, 1


def _merged(kinds: dict[Parameter, Counter[int | None]]) -> list[Parameter]:
    found = []
    for kind, layers in kinds.items():
        by_copies: dict[int, list[int | None]] = defaultdict(list)
        for layer, copies in layers.items():
            by_copies[copies].append(layer)
        for copies, members in by_copies.items():
            numbers = tuple(sorted(layer for layer in members if layer is not None))
            found.append(replace(kind, layers=numbers, copies=copies))
    return found
