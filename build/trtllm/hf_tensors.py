"""A linear's tensors in a Hugging Face checkpoint, compared with what TensorRT-LLM's PyTorch backend loads (by headers)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..models.checkpoint import Checkpoint, StoredTensor
from .hf_fused import FUSED
from .upstream import TensorLayout, upstream

__all__ = ["check_layout", "check_linear"]

_ALONE = ("o_proj", "down_proj")
_NAMES: dict[str, tuple[str, ...]] = {
    "uint8": ("U8",),
    "int8": ("I8", "U8"),
    "float8_e4m3fn": ("F8_E4M3",),
    "float32": ("F32", "BF16", "F16"),
    "model": ("BF16", "F16", "F32"),
}
"""Types in the record → those in a file: scales are cast when they are copied, weights are taken for what they are."""
_IN_THE_MODELS_TYPE = ("BF16", "F16")

_DIMENSION = re.compile(r"(out|in)(?:/(\d+|group_size))?")


def check_linear(checkpoint: Checkpoint, module: str, algorithm: str, group: int | None) -> Iterator[str]:
    """What upstream would miss of a linear that is quantized like this; nothing where the record does not know the algorithm.

    Args:
        checkpoint: its tensors, by name.
        module: the linear's full name.
        algorithm: upstream's ``quant_algo``.
        group: inputs that share a scale.
    """
    layouts = dict(upstream().hf_checkpoint.linears.get(algorithm, {}))
    own = module.rpartition(".")[2]
    scale = layouts.pop("pre_quant_scale", None)
    required = {name: layout for name, layout in layouts.items() if (algorithm, name) != ("FP8", "input_scale")}
    yield from check_layout(checkpoint, module, required, group)
    if scale is None:
        return
    there = checkpoint.tensors.get(f"{module}.pre_quant_scale")
    if own in _ALONE:
        yield from check_layout(checkpoint, module, {"pre_quant_scale": scale, "weight": layouts["weight"]}, group)
        if there and there.dtype not in _IN_THE_MODELS_TYPE:
            yield f"{module}.pre_quant_scale is {there.dtype}; it must have the model's type"
    elif there and algorithm == "W4A16_AWQ" and any(own in linears for linears in FUSED):
        yield f"{module}.pre_quant_scale would not be read: it must be part of the norm before {own}"


def check_layout(checkpoint: Checkpoint, module: str, layouts: Mapping[str, TensorLayout], group: int | None) -> Iterator[str]:
    """Tensors of a module that are missing, or of another type or size than the record says.

    Args:
        checkpoint: its tensors, by name.
        module: whose they are.
        layouts: the record's, by the tensors' last name; ``weight`` is among them and tells the sizes.
        group: inputs that share a scale.
    """
    if not layouts:
        return
    weight = checkpoint.tensors.get(f"{module}.weight")
    if weight is None:
        yield f"{module}.weight is missing"
        return
    if weight.dtype not in _NAMES[layouts["weight"].dtype]:
        yield f"{module}.weight is {weight.dtype}: it is not quantized, and no name in exclude_modules says so"
        return
    sizes = _sizes(weight, layouts["weight"]) | {"group_size": group or 0}
    for name, layout in layouts.items():
        tensor = checkpoint.tensors.get(f"{module}.{name}")
        if tensor is None:
            yield f"{module}.{name} is missing"
        elif tensor.dtype not in _NAMES[layout.dtype]:
            yield f"{module}.{name} is {tensor.dtype}, not {layout.dtype}"
        elif (wanted := _shape(layout, sizes)) != (() if not wanted and tensor.shape == (1,) else tensor.shape):
            yield f"{module}.{name} has the shape {list(tensor.shape)}, not {list(wanted)}"


def _sizes(weight: StoredTensor, layout: TensorLayout) -> dict[str, int]:
    """The linear's outputs and inputs, from its stored weight and what the record says of its dimensions."""
    found: dict[str, int] = {}
    for size, text in zip(weight.shape, layout.dims, strict=False):
        if match := _DIMENSION.fullmatch(str(text)):
            found[match[1]] = size * int(match[2] or 1)
    return found


def _shape(layout: TensorLayout, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """What the record's dimensions are for a linear of these sizes; blocks that are not whole count as one more."""
    found = []
    for text in layout.dims:
        match = _DIMENSION.fullmatch(str(text))
        if match is None:
            found.append(int(text))
            continue
        by = sizes[match[2]] if match[2] == "group_size" else int(match[2] or 1)
        found.append(-(-sizes[match[1]] // by) if by else 0)
    return tuple(found)
