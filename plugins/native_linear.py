"""The native products with weight matrices, on torch's tensors."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from roundhouse.errors import ServeError

from .native_interface import Linear, LinearKind, Product

if TYPE_CHECKING:
    import torch

__all__ = [
    "NativeLinear",
    "native_bf16",
    "native_int4",
    "pack_int4",
    "pack_scales",
    "takes_bf16",
    "takes_int4",
    "takes_int8_inputs",
]

_BLOCK = 16
"""INT4: outputs that lie side by side."""
_NIBBLES = 8
"""INT4: inputs in a word."""
_INT8_INPUTS = 32
"""INT4 times int8: groups are multiples of this."""
_BF16_INPUTS = 32
"""BF16: inputs come in multiples of this."""


def takes_int4(outputs: int, inputs: int, group: int) -> bool:
    """Whether the INT4 kernel has this shape."""
    return outputs % _BLOCK == 0 and inputs % group == 0 and group % _NIBBLES == 0


def takes_int8_inputs(group: int) -> bool:
    """Whether inputs of the INT4 kernel may be rounded to int8."""
    return group % _INT8_INPUTS == 0


def takes_bf16(inputs: int) -> bool:
    """Whether the BF16 kernel has this shape."""
    return inputs % _BF16_INPUTS == 0


def pack_int4(values: torch.Tensor) -> torch.Tensor:
    """int8 [N, K] of −8 … 7 → int32 [N / 16, K / 8, 16].

    Byte j of a word holds input 8i + j, plus 8, in its low nibble and input 8i + 4 + j in its high one.
    """
    import torch

    outputs, inputs = values.shape
    nibbles = (values.to(torch.int32) + 8).view(outputs // _BLOCK, _BLOCK, inputs // _NIBBLES, 2, 4)
    words = torch.zeros_like(nibbles[..., 0, 0])
    for byte in range(4):
        for half in range(2):
            words |= nibbles[..., half, byte] << (8 * byte + 4 * half)
    return words.transpose(1, 2).contiguous()


def pack_scales(scales: torch.Tensor) -> torch.Tensor:
    """float32 [N, K / group] → [N / 16, K / group, 16]."""
    return scales.float().view(scales.shape[0] // _BLOCK, _BLOCK, -1).transpose(1, 2).contiguous()


class NativeLinear:
    """A weight matrix that the kernels multiply with; made by :func:`native_int4` or :func:`native_bf16`."""

    def __init__(self, kernels: ctypes.CDLL, linear: Linear, *held: torch.Tensor) -> None:
        self._multiply = kernels.rh_linear
        self.structure = linear
        """Where it lies, for other calls; valid as long as this lives."""
        self._held = held  # their memory must outlive the matrix

    def __call__(
        self,
        x: torch.Tensor,
        dtype: torch.dtype,
        *,
        input_scale: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        int8: bool = False,
    ) -> torch.Tensor:
        """Multiply.

        Args:
            x: bfloat16 [M, K].
            dtype: of the result, bfloat16 or float32. Sums are float32 either way.
            input_scale: bfloat16 [K], multiplies x.
            bias: bfloat16 [N], added to the result.
            int8: INT4 only: round x, times its scale, to int8 by row and group.

        Returns:
            [M, N]. A row is bitwise the same whatever the other rows are.

        Raises:
            ServeError: a shape or dtype does not fit, or there is no memory left.
        """
        import torch

        outputs, inputs = self.structure.outputs, self.structure.inputs
        for name, each, shape in (
            ("x", x, (x.shape[0], inputs)),
            ("scale", input_scale, (inputs,)),
            ("bias", bias, (outputs,)),
        ):
            if each is not None and (each.dtype != torch.bfloat16 or each.shape != shape or each.device.type != "cpu"):
                raise ServeError(f"{name} {tuple(each.shape)} in {each.dtype} does not fit a linear of {inputs} to {outputs}")
        if dtype not in (torch.bfloat16, torch.float32):
            raise ServeError(f"the native linears give bfloat16 or float32, not {dtype}")
        x = x.contiguous()
        result = torch.empty(x.shape[0], outputs, dtype=dtype)
        product = Product(
            x.data_ptr(),
            None if input_scale is None else input_scale.data_ptr(),
            None if bias is None else bias.data_ptr(),
            result.data_ptr(),
            x.shape[0],
            dtype == torch.float32,
            int8,
        )
        code = self._multiply(ctypes.byref(self.structure), ctypes.byref(product))
        if code:
            raise ServeError(f"a product of {tuple(x.shape)} with {inputs} to {outputs} failed with code {code}")
        return result


def native_int4(kernels: ctypes.CDLL, words: torch.Tensor, scales: torch.Tensor) -> NativeLinear:
    """INT4 weights, as :func:`pack_int4` and :func:`pack_scales` made them. They are kept alive and not copied."""
    blocks, eighths, _ = words.shape
    group = eighths * _NIBBLES // scales.shape[1]
    linear = Linear(words.data_ptr(), scales.data_ptr(), LinearKind.INT4, blocks * _BLOCK, eighths * _NIBBLES, group)
    return NativeLinear(kernels, linear, words, scales)


def native_bf16(kernels: ctypes.CDLL, weight: torch.Tensor) -> NativeLinear:
    """BF16 weights, contiguous bfloat16 [N, K], as a checkpoint has them. They are kept alive and not copied."""
    import torch

    if weight.dtype != torch.bfloat16 or not weight.is_contiguous() or weight.device.type != "cpu":
        raise ServeError("the native linears need weights as one contiguous bfloat16 matrix on the CPU")
    outputs, inputs = weight.shape
    return NativeLinear(kernels, Linear(weight.data_ptr(), None, LinearKind.BF16, outputs, inputs, 0), weight)
