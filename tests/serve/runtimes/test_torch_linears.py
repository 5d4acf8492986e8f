"""INT4 linears: packed in memory, and the product of the matrix that the checkpoint means."""

from __future__ import annotations

import pytest
import torch

from roundhouse.build.weights import QuantizedLinear, dequantize
from roundhouse.serve.runtimes.torch_linears import DequantizedInt4Linear, PackedInt4Linear, int4_linear

SHAPES = [(64, 64, 32), (48, 128, 64), (32, 256, 256), (16, 128, 128)]
ODD_SHAPES = [(64, 64, 16), (24, 64, 32), (8, 48, 16)]


def quantized(rows: int, columns: int, group: int, *, input_scale: bool = False) -> QuantizedLinear:
    return QuantizedLinear(
        kind="int4",
        weight=torch.randint(0, 256, (rows // 2, columns), dtype=torch.uint8),
        weight_scale=torch.rand(rows, columns // group) * 0.01 + 0.001,
        pre_quant_scale=(torch.rand(columns) + 0.5).to(torch.bfloat16) if input_scale else None,
    )


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    return float((got.float() - expected).norm() / expected.norm())


@pytest.mark.parametrize(("rows", "columns", "group"), SHAPES + ODD_SHAPES)
@pytest.mark.parametrize("tokens", [1, 3, 40])
@pytest.mark.parametrize("extras", [False, True])
def test_the_product_is_that_of_the_dequantized_matrix(rows: int, columns: int, group: int, tokens: int, extras: bool) -> None:
    linear = quantized(rows, columns, group, input_scale=extras)
    bias = torch.randn(rows).to(torch.bfloat16) if extras else None
    module = int4_linear(linear, bias)
    assert isinstance(module, PackedInt4Linear if (rows, columns, group) in SHAPES else DequantizedInt4Linear)
    x = torch.randn(1, tokens, columns).to(torch.bfloat16)
    expected = x.float() @ dequantize(linear).t() + (0 if bias is None else bias.float())
    got = module(x)
    assert got.shape == (1, tokens, rows)
    assert got.dtype == torch.bfloat16
    assert relative_error(got, expected) < 0.01


@pytest.mark.parametrize(("rows", "columns", "group"), SHAPES + ODD_SHAPES)
def test_a_weight_takes_half_a_byte_and_a_group_four(rows: int, columns: int, group: int) -> None:
    module = int4_linear(quantized(rows, columns, group, input_scale=True), None)
    held = sum(tensor.nbytes for tensor in module.state_dict().values())
    assert held == rows * columns // 2 + 4 * rows * (columns // group) + 2 * columns
