"""How quantizers pack weights into safetensors: which scales belong to which weight, and the shape behind the packing."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache

from .checkpoint import StoredTensor
from .shape import ModelShape

__all__ = ["logical_shape", "owner_of"]

_WEIGHTS = ("weight", "weight_packed", "qweight")
"""Last words of the names that quantizers give to a linear's weight."""
_SCALES = (
    "weight_scale", "weight_scale_inv", "weight_scale_2", "weight_global_scale", "weight_shape", "weight_zero_point",
    "weight_g_idx", "input_scale", "input_zero_point", "input_global_scale", "output_scale", "pre_quant_scale", "qzeros",
    "scales", "g_idx", "k_scale", "v_scale",
)  # fmt: skip
"""Last words of what belongs to a linear's weight: scales, zero points, orders."""
_FUSED_SCALE = re.compile(r"_(scales|scale|scale_inv)$")
"""Behind the name of a parameter that is no module of its own: experts in one tensor."""


@cache
def owner_of(last: str) -> tuple[str, bool]:
    """The last word of the plain name of the weight that a tensor belongs to, and whether it would be a scale of it.

    ``weight_packed`` → ``weight`` itself, ``weight_scale`` → a scale of it, ``down_proj_scales`` → a scale of ``down_proj``.
    """
    if last in _WEIGHTS:
        return "weight", False
    if last in _SCALES:
        return "weight", True
    if _FUSED_SCALE.search(last):
        return _FUSED_SCALE.sub("", last), True
    return last.removesuffix("_blocks"), False


def logical_shape(
    weight: StoredTensor, scales: Sequence[StoredTensor], shape: ModelShape
) -> tuple[tuple[int, ...], int | None]:
    """(outputs, inputs) of the 16-bit weight behind a stored one, and how many experts are fused into it, if any are.

    A packing that is not known is left as it stands: its bytes are right all the same.
    """
    dims, last = weight.shape, weight.name.rpartition(".")[2]
    if last.endswith("_blocks") and len(dims) > 2:  # MXFP4: [experts, outputs, blocks, bytes of a block]
        return (dims[1], math.prod(dims[2:]) * 2), dims[0]
    if ".experts" in weight.name and len(dims) == 3:
        return _turned(_unpacked(weight, dims[1:], scales, shape), shape.hidden, down="down" in last), dims[0]
    if ".experts" in weight.name and len(dims) == 2 and last.endswith("_bias"):
        return dims[1:], dims[0]
    return (_unpacked(weight, dims, scales, shape) if len(dims) == 2 else dims), None


def _unpacked(
    weight: StoredTensor, dims: tuple[int, ...], scales: Sequence[StoredTensor], shape: ModelShape
) -> tuple[int, ...]:
    """(outputs, inputs) of a matrix, told by where it is packed: along which side, its scales show."""
    (rows, columns), last = dims, weight.name.rpartition(".")[2]
    bits = (shape.quantization.bits if shape.quantization else None) or 4
    by_name = {scale.name.rpartition(".")[2]: scale.shape for scale in scales}
    if last == "qweight" and weight.dtype == "I32":  # inputs first; AWQ packs outputs, GPTQ packs inputs
        packs_inputs = by_name.get("scales", ())[-1:] == (columns,)
        return (columns, rows * 32 // bits) if packs_inputs else (columns * 32 // bits, rows)
    if last == "weight_packed" and weight.dtype == "I32":
        return rows, columns * 32 // bits
    if weight.dtype == "U8" and bits == 4:  # two to a byte: ModelOpt's INT4 packs outputs, every FP4 packs inputs
        scale_rows = by_name.get("weight_scale", ())[-2:-1]
        if scale_rows == (2 * rows,):
            return 2 * rows, columns
        if scale_rows == (rows,):
            return rows, 2 * columns
    return rows, columns


def _turned(dims: tuple[int, ...], hidden: int, *, down: bool) -> tuple[int, ...]:
    """(outputs, inputs) of fused experts: some families store them the other way round, which their hidden side shows."""
    rows, columns = dims
    inputs_first = columns == hidden != rows if down else rows == hidden != columns
    return (columns, rows) if inputs_first else dims
