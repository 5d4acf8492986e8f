"""Linears by the native kernels of :mod:`roundhouse.plugins`."""

from __future__ import annotations

import ctypes

import torch
from torch import nn
from transformers import PreTrainedModel

from roundhouse.build.weights import QuantizedLinear, unpack_int4
from roundhouse.plugins.native_linear import native_bf16, native_int4, pack_int4, pack_scales, takes_bf16, takes_int4

from .torch_linears import Int4Linear

__all__ = ["NativeBf16Linear", "NativeInt4Linear", "use_native_bf16"]


class NativeInt4Linear(Int4Linear):
    """INT4 weights that are decoded in registers; one packed copy serves every batch size."""

    def __init__(self, linear: QuantizedLinear, bias: torch.Tensor | None, kernels: ctypes.CDLL) -> None:
        super().__init__(linear, bias)
        self.register_buffer("packed", pack_int4(unpack_int4(linear.weight)))
        self.register_buffer("scales", pack_scales(linear.weight_scale))
        self.packed: torch.Tensor
        self.scales: torch.Tensor
        self.matrix = native_int4(kernels, self.packed, self.scales)
        self.group = int(linear.group_size or 0)

    @staticmethod
    def takes(linear: QuantizedLinear) -> bool:
        """Whether the kernel has this shape and group."""
        group = linear.group_size
        return group is not None and takes_int4(*linear.shape, group)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.matrix(x.flatten(0, -2), x.dtype, input_scale=self.pre_quant_scale, bias=self.bias)
        return y.view(*x.shape[:-1], y.shape[-1])


class NativeBf16Linear(nn.Module):
    """A linear of a model, on the same weight: nothing is copied, so a tied one stays tied.

    Args:
        linear: with a bfloat16 weight on the CPU.
        dtype: of the result; sums are float32, and logits lose nothing when they stay so.
        kernels: the compiled kernels.
    """

    def __init__(self, linear: nn.Linear, dtype: torch.dtype, kernels: ctypes.CDLL) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        self._dtype = dtype
        self.matrix = native_bf16(kernels, linear.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """bfloat16 [..., K] → [..., N]."""
        y = self.matrix(x.flatten(0, -2), self._dtype, bias=self.bias)
        return y.view(*x.shape[:-1], y.shape[-1])


def use_native_bf16(model: PreTrainedModel, kernels: ctypes.CDLL, *, head_only: bool) -> None:
    """Put native linears in the place of a loaded model's plain ones, where the kernel has their shape.

    Args:
        model: its head gives float32 logits from now on.
        kernels: the compiled kernels.
        head_only: leave all others to torch, which is better at them where the CPU has bf16 instructions.
    """
    head = model.get_output_embeddings()
    for name, module in list(model.named_modules()):
        if head_only and module is not head:
            continue
        if isinstance(module, nn.Linear) and module.weight.dtype == torch.bfloat16 and takes_bf16(module.in_features):
            dtype = torch.float32 if module is head else torch.bfloat16
            model.set_submodule(name, NativeBf16Linear(module, dtype, kernels))
