"""The linears of a layer in a TensorRT-LLM checkpoint: their names there, and what of them one rank holds.

Names and layouts are those of ``quant`` in ``upstream.json``. A fused linear holds its parts' rows one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from roundhouse.errors import BuildError, ModelError

from ..models.shape import ModelShape
from ..weights import QuantizedLinear, quantized_linear
from .ranks import Rank

if TYPE_CHECKING:
    import torch

__all__ = ["LINEARS", "LayerLinear", "convert_linear", "padded_sizes", "rows_of"]

_LEAST_INT4 = 64
"""Upstream rounds the sizes of an INT4 linear up to multiples of this, or of the group where that is larger."""


@dataclass(frozen=True)
class LayerLinear:
    """A linear of every layer."""

    name: str
    """In a TensorRT-LLM checkpoint, after the layer's name."""
    parts: tuple[str, ...]
    """In a Hugging Face checkpoint, after the layer's name; several where upstream has them fused."""
    split: Literal["outputs", "inputs"]
    """What the ranks of a stage share out."""


LINEARS = (
    LayerLinear("attention.qkv", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "outputs"),
    LayerLinear("attention.dense", ("self_attn.o_proj",), "inputs"),
    LayerLinear("mlp.fc", ("mlp.gate_proj",), "outputs"),
    LayerLinear("mlp.gate", ("mlp.up_proj",), "outputs"),
    LayerLinear("mlp.proj", ("mlp.down_proj",), "inputs"),
)


def rows_of(part: str, rows: int, shape: ModelShape, rank: Rank) -> range:
    """Which outputs of a linear that is shared out by outputs belong to a rank: whole heads of attention's."""
    if part in ("self_attn.k_proj", "self_attn.v_proj"):
        heads = rank.kv_heads(shape)
        return range(heads.start * shape.head_dim, heads.stop * shape.head_dim)
    return rank.share(rows)


def padded_sizes(shape: ModelShape, *, tensor: int, group: int) -> list[str]:
    """Sizes of INT4 linears that upstream would round up, leaving what we wrote too small for its layers; in words."""
    multiple = max(_LEAST_INT4, group) * tensor
    repeated = max(shape.kv_heads, tensor)
    sizes = {
        "hidden size": shape.hidden,
        "attention's heads": shape.heads * shape.head_dim,
        "queries, keys and values": (shape.heads + 2 * repeated) * shape.head_dim,
        "intermediate size": shape.intermediate,
    }
    return [f"{name} {size} is no multiple of {multiple}" for name, size in sizes.items() if size % multiple]


def convert_linear(
    linear: LayerLinear, layer: str, tensors: Mapping[str, torch.Tensor], shape: ModelShape, rank: Rank
) -> dict[str, torch.Tensor]:
    """One rank's part of one linear, by the last part of its tensors' names.

    Args:
        linear: which.
        layer: the layer's name in the Hugging Face checkpoint, such as ``model.layers.3``.
        tensors: of the Hugging Face checkpoint.
        shape: the model's.
        rank: whose part.

    Raises:
        BuildError: parts that upstream fuses differ in what they must share.
    """
    names = [f"{layer}.{part}" for part in linear.parts]
    quantized = [_quantized(tensors, name) for name in names]
    kinds = {each.kind if each else None for each in quantized}
    if len(kinds) > 1:
        raise BuildError(f"{', '.join(names)} are quantized in different ways, and TensorRT-LLM fuses them")
    if kinds == {"int4"}:
        found = _int4(linear, names, [each for each in quantized if each], shape, rank)
    elif kinds == {"fp8"}:
        found = _fp8(linear, names, tensors, shape, rank)
    else:
        found = {"weight": _cut(linear, [tensors[f"{name}.weight"] for name in names], shape, rank)}
    if biases := [tensors[f"{name}.bias"] for name in names if f"{name}.bias" in tensors]:
        # Of what is shared out by inputs every rank has the whole bias: upstream adds it once, after the sum over ranks,
        # or zeroes all but the first.
        found["bias"] = biases[0] if linear.split == "inputs" else _cut(linear, biases, shape, rank)
    return {name: tensor.contiguous() for name, tensor in found.items()}


def _quantized(tensors: Mapping[str, torch.Tensor], name: str) -> QuantizedLinear | None:
    return quantized_linear(tensors, name) if f"{name}.weight_scale" in tensors else None


def _int4(
    linear: LayerLinear, names: Sequence[str], parts: Sequence[QuantizedLinear], shape: ModelShape, rank: Rank
) -> dict[str, torch.Tensor]:
    """W4A16_AWQ: ``weight`` int8 [N/2, K], ``weights_scaling_factor`` float32 [N, K/g], ``prequant_scaling_factor`` [K].

    The packing is the same as in the Hugging Face checkpoint. Scales stay float32, as ModelOpt writes them; upstream rounds
    them to the model's type when it loads them. Where the input's scale is part of the norm before, it is written as ones:
    upstream asks every INT4 linear for one.
    """
    import torch

    inputs = parts[0].shape[1]
    own = [part.pre_quant_scale for part in parts if part.pre_quant_scale is not None]
    scale = own[0] if own else torch.ones(inputs, dtype=torch.bfloat16)
    if own and (len(own) < len(parts) or any(not torch.equal(scale, other) for other in own)):
        raise BuildError(f"{', '.join(names)} scale their input differently, and TensorRT-LLM fuses them")
    return {
        "weight": _cut(linear, [part.weight for part in parts], shape, rank, packed=2).view(torch.int8),
        "weights_scaling_factor": _cut(linear, [part.weight_scale.float() for part in parts], shape, rank),
        "prequant_scaling_factor": scale[_slice(rank.share(inputs))] if linear.split == "inputs" else scale,
    }


def _fp8(
    linear: LayerLinear, names: Sequence[str], tensors: Mapping[str, torch.Tensor], shape: ModelShape, rank: Rank
) -> dict[str, torch.Tensor]:
    """FP8: ``weight`` float8_e4m3fn [N, K], ``weights_scaling_factor`` and ``activation_scaling_factor`` float32 [1]."""
    import torch

    scales = {}
    for name, suffix in (("weights_scaling_factor", "weight_scale"), ("activation_scaling_factor", "input_scale")):
        if missing := [part for part in names if f"{part}.{suffix}" not in tensors]:
            raise ModelError(f"{', '.join(missing)} has no {suffix}")
        values = {float(tensors[f"{part}.{suffix}"]) for part in names}
        if len(values) > 1:
            raise BuildError(f"{', '.join(names)} have different {suffix}s, and TensorRT-LLM fuses them")
        scales[name] = torch.tensor([values.pop()], dtype=torch.float32)
    # Cut as bytes: not every operation knows the type.
    weights = [tensors[f"{name}.weight"].view(torch.uint8) for name in names]
    return {"weight": _cut(linear, weights, shape, rank).view(torch.float8_e4m3fn), **scales}


def _cut(linear: LayerLinear, parts: Sequence[torch.Tensor], shape: ModelShape, rank: Rank, *, packed: int = 1) -> torch.Tensor:
    """A rank's rows of every part, one part after the other; or its columns of the only one. ``packed`` rows lie in one."""
    import torch

    if linear.split == "inputs":
        (whole,) = parts
        return whole[:, _slice(rank.share(whole.shape[1]))]
    rows = [rows_of(part, tensor.shape[0] * packed, shape, rank) for part, tensor in zip(linear.parts, parts, strict=True)]
    return torch.cat(
        [tensor[each.start // packed : each.stop // packed] for tensor, each in zip(parts, rows, strict=True)], dim=0
    )


def _slice(rows: range) -> slice:
    return slice(rows.start, rows.stop)
