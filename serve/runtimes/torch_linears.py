"""Quantized linears in torch. INT4 weights stay packed: half a byte a weight and four bytes a group."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import nn

from roundhouse.build.weights import QuantizedLinear, dequantize, unpack_int4

__all__ = ["DequantizedInt4Linear", "Int4Linear", "PackedInt4Linear", "TorchInt4Linear", "torch_int4_linear"]

_KERNEL_GROUPS = (32, 64, 128, 256)
_KERNEL_ROWS = 16
"""torch's kernel packs output channels in blocks of this many."""


class Int4Linear(nn.Module, ABC):
    """What all forms share: an optional input scale and an optional bias, bfloat16 [K] and [N]."""

    def __init__(self, linear: QuantizedLinear, bias: torch.Tensor | None) -> None:
        super().__init__()
        scale = linear.pre_quant_scale
        self.register_buffer("pre_quant_scale", None if scale is None else scale.to(torch.bfloat16))
        self.register_buffer("bias", None if bias is None else bias.to(torch.bfloat16))
        self.pre_quant_scale: torch.Tensor | None
        self.bias: torch.Tensor | None

    @abstractmethod
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """bfloat16 [..., K] → [..., N]."""


class TorchInt4Linear(Int4Linear, ABC):
    """Scale and bias around a product."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.pre_quant_scale is not None:
            x = x * self.pre_quant_scale
        y = self.multiply(x.flatten(0, -2))
        y = y.view(*x.shape[:-1], y.shape[-1])
        return y if self.bias is None else y + self.bias

    @abstractmethod
    def multiply(self, x: torch.Tensor) -> torch.Tensor:
        """bfloat16 [M, K] times the weight's transpose: [M, N]."""


class PackedInt4Linear(TorchInt4Linear):
    """INT4 through torch's own CPU kernel, which reads packed weights as they are."""

    def __init__(self, linear: QuantizedLinear, bias: torch.Tensor | None) -> None:
        super().__init__(linear, bias)
        self._group = linear.weight.shape[1] // linear.weight_scale.shape[1]
        unsigned = unpack_int4(linear.weight).to(torch.int32) + 8  # the kernel subtracts the 8
        scales = linear.weight_scale.t().to(torch.bfloat16)
        self.register_buffer("packed", torch.ops.aten._convert_weight_to_int4pack_for_cpu(unsigned, 1))
        self.register_buffer("scales_and_zeros", torch.stack((scales, torch.zeros_like(scales)), dim=-1).contiguous())
        self.packed: torch.Tensor
        self.scales_and_zeros: torch.Tensor

    @staticmethod
    def takes(linear: QuantizedLinear) -> bool:
        """Whether torch's kernel has this shape and group."""
        return linear.group_size in _KERNEL_GROUPS and linear.shape[0] % _KERNEL_ROWS == 0

    def multiply(self, x: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
            x.contiguous(), self.packed, self._group, self.scales_and_zeros
        )
        return product


class DequantizedInt4Linear(TorchInt4Linear):
    """INT4 for any shape: unpacked anew in every step. Slow, and only for what the kernel does not take."""

    def __init__(self, linear: QuantizedLinear, bias: torch.Tensor | None) -> None:
        super().__init__(linear, bias)
        self.register_buffer("weight", linear.weight)
        self.register_buffer("weight_scale", linear.weight_scale)
        self.weight: torch.Tensor
        self.weight_scale: torch.Tensor

    def multiply(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, dequantize(QuantizedLinear("int4", self.weight, self.weight_scale, None)).to(x.dtype))


def torch_int4_linear(linear: QuantizedLinear, bias: torch.Tensor | None) -> TorchInt4Linear:
    """The fastest form in torch that takes this linear."""
    return PackedInt4Linear(linear, bias) if PackedInt4Linear.takes(linear) else DequantizedInt4Linear(linear, bias)
