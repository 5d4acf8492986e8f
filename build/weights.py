"""Reading a quantized checkpoint back: which modules are quantized, how, and what their weights mean.

The layout is ModelOpt's unified Hugging Face export (0.47):

* INT4: ``weight`` uint8 [N/2, K], two output channels a byte: channel 2i in the low nibble, 2i+1 in
  the high one, two's complement. ``weight_scale`` float32 [N, K/g]. ``W = q * scale``.
* FP8: ``weight`` float8_e4m3fn [N, K], ``weight_scale`` float32 scalar. ``W = q * scale``.
* ``pre_quant_scale`` [K], where present, multiplies the module's *input*.
* ``k_proj.k_scale`` and ``v_proj.v_scale`` float32 scalars: a cached row is stored as ``row / scale``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from roundhouse.errors import ModelError

if TYPE_CHECKING:
    import torch

__all__ = ["QuantizedLinear", "Tensors", "dequantize", "load_tensors", "quantized_linear", "quantized_linears", "unpack_int4"]


@dataclass(frozen=True)
class QuantizedLinear:
    """The tensors of one quantized linear, as stored (shapes in the module's docstring)."""

    kind: Literal["int4", "fp8"]
    weight: torch.Tensor
    weight_scale: torch.Tensor
    pre_quant_scale: torch.Tensor | None

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K): output and input features."""
        rows, columns = self.weight.shape
        return (rows * 2 if self.kind == "int4" else rows), columns

    @property
    def group_size(self) -> int | None:
        """Input channels that share a scale, or None when the whole tensor shares one."""
        return self.shape[1] // self.weight_scale.shape[1] if self.kind == "int4" else None


class Tensors(Mapping[str, "torch.Tensor"]):
    """A checkpoint folder's tensors, each read from disk when it is asked for (CPU)."""

    def __init__(self, folder: Path) -> None:
        from safetensors import safe_open

        from .models.checkpoint import read_checkpoint

        checkpoint = read_checkpoint(folder)
        self._files = {name: safe_open(folder / name, framework="pt") for name in checkpoint.files}
        self._file_of = {tensor.name: tensor.file for tensor in checkpoint.tensors.values()}

    def __getitem__(self, name: str) -> torch.Tensor:
        tensor: torch.Tensor = self._files[self._file_of[name]].get_tensor(name)  # type: ignore[no-untyped-call]  # safetensors
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._file_of)

    def __len__(self) -> int:
        return len(self._file_of)


def load_tensors(folder: Path) -> dict[str, torch.Tensor]:
    """Every tensor of a checkpoint folder, in memory."""
    return dict(Tensors(folder))


def quantized_linears(tensors: Mapping[str, torch.Tensor]) -> dict[str, QuantizedLinear]:
    """Every quantized linear of a checkpoint, by module name (see :func:`quantized_linear`)."""
    modules = [name.removesuffix(".weight_scale") for name in tensors if name.endswith(".weight_scale")]
    return {module: quantized_linear(tensors, module) for module in modules}


def quantized_linear(tensors: Mapping[str, torch.Tensor], module: str) -> QuantizedLinear:
    """The quantized linear called ``module``.

    Raises:
        ModelError: it has no weight or no scale, or they are of no known quantized type.
    """
    import torch

    missing = [name for name in (f"{module}.weight", f"{module}.weight_scale") if name not in tensors]
    if missing:
        raise ModelError(f"{module} is not a quantized linear: {', '.join(missing)} is absent")
    weight, scale = tensors[f"{module}.weight"], tensors[f"{module}.weight_scale"]
    pre_quant_scale = tensors.get(f"{module}.pre_quant_scale")
    if weight.dtype == torch.uint8 and scale.dim() == 2:
        return QuantizedLinear("int4", weight, scale, pre_quant_scale)
    if weight.dtype == torch.float8_e4m3fn and scale.numel() == 1:
        return QuantizedLinear("fp8", weight, scale, pre_quant_scale)
    raise ModelError(
        f"{module} is quantized in an unknown way: weight {weight.dtype} {tuple(weight.shape)}, "
        f"scale {scale.dtype} {tuple(scale.shape)}"
    )


def unpack_int4(packed: torch.Tensor) -> torch.Tensor:
    """Packed uint8 [N/2, K] → int8 [N, K] with values −8..7."""
    import torch

    low, high = packed & 0xF, packed >> 4
    nibbles = torch.stack((low, high), dim=1).reshape(packed.shape[0] * 2, packed.shape[1]).to(torch.int8)
    return torch.where(nibbles > 7, nibbles - 16, nibbles)


def dequantize(linear: QuantizedLinear, *, fold_input_scale: bool = True) -> torch.Tensor:
    """The float32 [N, K] matrix that the module multiplies its input by.

    With ``fold_input_scale`` the ``pre_quant_scale`` is part of the matrix; without, the caller
    multiplies the input by it.
    """
    import torch

    if linear.kind == "int4":
        quantized = unpack_int4(linear.weight).float()
        rows, columns = quantized.shape
        groups = linear.weight_scale.shape[1]
        weight = (quantized.view(rows, groups, columns // groups) * linear.weight_scale.float()[:, :, None]).view(rows, columns)
    else:
        weight = linear.weight.to(torch.float32) * linear.weight_scale.float()
    if fold_input_scale and linear.pre_quant_scale is not None:
        weight = weight * linear.pre_quant_scale.float()
    return weight
