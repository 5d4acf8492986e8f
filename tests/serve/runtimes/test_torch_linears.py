"""Linears: packed in memory, the product of the matrix that the checkpoint means, and which form a model gets."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest
import torch

from roundhouse.build.weights import QuantizedLinear, dequantize
from roundhouse.serve.runtimes import torch_model
from roundhouse.serve.runtimes.native_linears import NativeBf16Linear, NativeInt4Linear
from roundhouse.serve.runtimes.torch_linears import (
    DequantizedInt4Linear,
    Int4Linear,
    PackedInt4Linear,
    torch_int4_linear,
)
from roundhouse.serve.runtimes.torch_model import load_model, weight_bytes

SHAPES = [(64, 64, 32), (48, 128, 64), (32, 256, 256), (16, 128, 128)]
ODD_SHAPES = [(64, 64, 16), (24, 64, 32), (8, 48, 16)]
NATIVE_SHAPES = [*SHAPES, (64, 64, 16), (16, 48, 24), (32, 1536, 1536)]


def quantized(rows: int, columns: int, group: int, *, input_scale: bool = False) -> QuantizedLinear:
    return QuantizedLinear(
        kind="int4",
        weight=torch.randint(0, 256, (rows // 2, columns), dtype=torch.uint8),
        weight_scale=torch.rand(rows, columns // group) * 0.01 + 0.001,
        pre_quant_scale=(torch.rand(columns) + 0.5).to(torch.bfloat16) if input_scale else None,
    )


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    return float((got.float() - expected).norm() / (expected.norm() + 1e-9))


@pytest.mark.parametrize(("rows", "columns", "group"), SHAPES + ODD_SHAPES)
@pytest.mark.parametrize("tokens", [0, 1, 3, 40])
@pytest.mark.parametrize("extras", [False, True])
def test_the_product_is_that_of_the_dequantized_matrix(rows: int, columns: int, group: int, tokens: int, extras: bool) -> None:
    linear = quantized(rows, columns, group, input_scale=extras)
    bias = torch.randn(rows).to(torch.bfloat16) if extras else None
    module = torch_int4_linear(linear, bias)
    assert isinstance(module, PackedInt4Linear if (rows, columns, group) in SHAPES else DequantizedInt4Linear)
    assert_multiplies(module, linear, bias, tokens)


@pytest.mark.parametrize(("rows", "columns", "group"), NATIVE_SHAPES)
@pytest.mark.parametrize("tokens", [0, 1, 3, 40])
@pytest.mark.parametrize("extras", [False, True])
def test_the_native_product_is_that_of_the_dequantized_matrix(
    kernels: ctypes.CDLL, rows: int, columns: int, group: int, tokens: int, extras: bool
) -> None:
    linear = quantized(rows, columns, group, input_scale=extras)
    bias = torch.randn(rows).to(torch.bfloat16) if extras else None
    assert NativeInt4Linear.takes(linear)
    assert_multiplies(NativeInt4Linear(linear, bias, kernels), linear, bias, tokens)


def test_the_native_kernel_says_what_it_does_not_take() -> None:
    assert not any(NativeInt4Linear.takes(quantized(*shape)) for shape in [(24, 64, 32), (16, 48, 12)])


def assert_multiplies(module: Int4Linear, linear: QuantizedLinear, bias: torch.Tensor | None, tokens: int) -> None:
    rows, columns = linear.shape
    x = torch.randn(1, tokens, columns).to(torch.bfloat16)
    expected = x.float() @ dequantize(linear).t() + (0 if bias is None else bias.float())
    got = module(x)
    assert got.shape == (1, tokens, rows)
    assert got.dtype == torch.bfloat16
    assert relative_error(got, expected) < 0.01


@pytest.mark.parametrize(("rows", "columns", "group"), SHAPES + ODD_SHAPES)
def test_a_weight_takes_half_a_byte_and_a_group_four(rows: int, columns: int, group: int) -> None:
    module = torch_int4_linear(quantized(rows, columns, group, input_scale=True), None)
    held = sum(tensor.nbytes for tensor in module.state_dict().values())
    assert held == rows * columns // 2 + 4 * rows * (columns // group) + 2 * columns


@pytest.mark.parametrize(("rows", "columns", "group"), NATIVE_SHAPES)
def test_natively_too(kernels: ctypes.CDLL, rows: int, columns: int, group: int) -> None:
    module = NativeInt4Linear(quantized(rows, columns, group, input_scale=True), None, kernels)
    held = sum(tensor.nbytes for tensor in module.state_dict().values())
    assert held == rows * columns // 2 + 4 * rows * (columns // group) + 2 * columns


@pytest.mark.parametrize("weights", ["bf16", "int4_awq"])
@pytest.mark.parametrize("emulated", [True, False])
def test_plain_linears_are_native_where_torch_emulates_bfloat16_and_share_their_weights(
    build_engine: Any, kernels: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch, emulated: bool, weights: str
) -> None:
    machine = torch_model.this_machine().model_copy(update={"native_bf16": not emulated})
    monkeypatch.setattr(torch_model, "this_machine", lambda: machine)
    folder: Path = build_engine("llama", weights=weights).checkpoint  # its head is tied to its embedding
    model, plain = (load_model(folder, dtype=torch.bfloat16, kernels=each) for each in (kernels, None))
    kinds = {type(module) for module in model.modules()}
    assert (NativeInt4Linear in kinds) == (weights == "int4_awq")
    assert PackedInt4Linear not in kinds
    assert isinstance(model.lm_head, NativeBf16Linear)  # so its logits are float32 either way
    others = [module for module in model.modules() if isinstance(module, NativeBf16Linear) and module is not model.lm_head]
    assert bool(others) == (emulated and weights == "bf16")
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    assert weight_bytes(model) == weight_bytes(plain)
    for positions in (3, 0):  # a step whose rows are all in the middle of their prompts has none to sample
        hidden = torch.randn(1, positions, model.config.hidden_size).to(torch.bfloat16)
        logits, expected = model.lm_head(hidden), plain.lm_head(hidden)
        assert logits.shape == expected.shape
        assert logits.dtype == torch.float32
        assert relative_error(logits, expected.float()) < 0.01


def test_the_reference_has_neither(build_engine: Any, kernels: ctypes.CDLL) -> None:
    model = load_model(build_engine("llama").checkpoint, dtype=torch.float32, keep_packed=False, kernels=kernels)
    kinds = {type(module) for module in model.modules()}
    assert not kinds & {NativeBf16Linear, NativeInt4Linear}
