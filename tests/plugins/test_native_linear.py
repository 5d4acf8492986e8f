"""The native linears against float64 on fresh random inputs, and what they promise beyond being right."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from roundhouse.errors import ServeError
from roundhouse.plugins.native_interface import Linear, LinearKind, Product
from roundhouse.plugins.native_linear import NativeLinear, native_bf16, native_int4, pack_int4, pack_scales

BAD_GEOMETRY = 1
KINDS = ["bf16", "int4", "int4 by int8"]


@dataclass(frozen=True)
class Case:
    """A matrix, what it is multiplied with, and the product in float64."""

    kind: str
    x: torch.Tensor
    weights: torch.Tensor
    """int8 values of INT4, or bfloat16."""
    scales: torch.Tensor
    input_scale: torch.Tensor | None
    bias: torch.Tensor | None

    @property
    def int8(self) -> bool:
        return self.kind == "int4 by int8"

    def matrix(self, kernels: ctypes.CDLL) -> NativeLinear:
        if self.kind == "bf16":
            return native_bf16(kernels, self.weights)
        return native_int4(kernels, pack_int4(self.weights), pack_scales(self.scales))

    def multiply(self, kernels: ctypes.CDLL, dtype: torch.dtype, rows: slice = slice(None)) -> torch.Tensor:
        return self.matrix(kernels)(self.x[rows], dtype, input_scale=self.input_scale, bias=self.bias, int8=self.int8)

    def expected(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The product, and the sum of its terms' sizes: what a float32 sum's error is relative to."""
        weights = self.weights.double()
        if self.kind != "bf16":
            weights = weights * self.scales.double().repeat_interleave(weights.shape[1] // self.scales.shape[1], dim=1)
        x = self.x.double() * (1.0 if self.input_scale is None else self.input_scale.double())
        if self.int8:
            x = self.rounded(x)
        product, sizes = x @ weights.t(), x.abs() @ (weights.abs() + 8 * self.scales.double().mean()).t()
        return (product if self.bias is None else product + self.bias.double()).numpy(), sizes.numpy()

    def rounded(self, x: torch.Tensor) -> torch.Tensor:
        """To 255 steps a row and group, in float32 as the kernel does it: a value between two steps goes the same way."""
        groups = x.float().view(len(x), self.scales.shape[1], -1)
        largest = groups.abs().amax(dim=-1, keepdim=True)
        steps = (groups * (torch.full_like(largest, 127) / largest).nan_to_num(posinf=0)).round()
        return (steps.double() * (largest / 127).double()).view(x.shape)


def random_case(seed: int, kind: str, rows: int, outputs: int, inputs: int, group: int, *, extras: bool) -> Case:
    generator = torch.Generator().manual_seed(seed)
    normal = lambda *shape: torch.randn(*shape, generator=generator).to(torch.bfloat16)  # noqa: E731
    int4 = torch.randint(-8, 8, (outputs, inputs), generator=generator).to(torch.int8)
    return Case(
        kind=kind,
        x=normal(rows, inputs),
        weights=normal(outputs, inputs) if kind == "bf16" else int4,
        scales=torch.rand(outputs, inputs // group, generator=generator) * 0.1 + 0.01,
        input_scale=normal(inputs).abs() + 0.5 if extras else None,
        bias=normal(outputs) if extras else None,
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(KINDS))
    group = {"bf16": 32, "int4": 8 * draw(st.integers(1, 17)), "int4 by int8": 32 * draw(st.integers(1, 5))}[kind]
    outputs = draw(st.integers(1, 70)) if kind == "bf16" else 16 * draw(st.integers(1, 5))
    rows, inputs = draw(st.integers(1, 40)), group * draw(st.integers(1, 6))
    return random_case(draw(st.integers(0, 2**32)), kind, rows, outputs, inputs, group, extras=draw(st.booleans()))


@given(case=cases(), dtype=st.sampled_from([torch.bfloat16, torch.float32]))
@settings(max_examples=80)
def test_it_agrees_with_float64(kernels: ctypes.CDLL, case: Case, dtype: torch.dtype) -> None:
    got = case.multiply(kernels, dtype)
    assert got.dtype == dtype
    expected, sizes = case.expected()
    allowed = sizes * 1e-6 + (np.abs(expected) / 256 if dtype == torch.bfloat16 else 0) + 1e-6
    assert (np.abs(got.double().numpy() - expected) <= allowed).all()


@pytest.fixture
def threads() -> Iterator[None]:
    """Lets a test set the number of threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_bitwise_the_same_alone_and_among_others_on_any_number_of_threads(
    kernels: ctypes.CDLL, threads: None, kind: str
) -> None:
    case = random_case(3, kind, 200, 208, 1536, 64, extras=True)
    outputs = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        assert kernels.rh_threads() == count, "the kernels have an OpenMP of their own"
        outputs.append(case.multiply(kernels, torch.float32))
        for rows in (1, 2, 3, 4, 5, 7):
            for first in (0, 93, 200 - rows):
                some = slice(first, first + rows)
                assert torch.equal(case.multiply(kernels, torch.float32, some), outputs[0][some])
    assert torch.equal(outputs[0], outputs[1])
    assert torch.equal(outputs[0], outputs[2])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_is_none_spoils_its_own_row_only(kernels: ctypes.CDLL, kind: str, bad: float) -> None:
    case = random_case(4, kind, 8, 32, 64, 32, extras=False)
    clean = case.multiply(kernels, torch.bfloat16)
    case.x[5, 17] = bad
    got = case.multiply(kernels, torch.bfloat16)
    assert not got[5].isfinite().any()
    others = [0, 1, 2, 3, 4, 6, 7]
    assert torch.equal(got[others], clean[others])


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_is_float32_rounded_as_torch_rounds_it(kernels: ctypes.CDLL, kind: str) -> None:
    case = random_case(5, kind, 64, 64, 256, 32, extras=True)
    assert torch.equal(case.multiply(kernels, torch.bfloat16), case.multiply(kernels, torch.float32).to(torch.bfloat16))


def test_rows_may_be_strided_or_none(kernels: ctypes.CDLL) -> None:
    case = random_case(6, "int4", 8, 32, 64, 32, extras=False)
    matrix, whole = case.matrix(kernels), case.multiply(kernels, torch.bfloat16)
    assert torch.equal(matrix(case.x[::2], torch.bfloat16), whole[::2])
    assert torch.equal(matrix(case.x.t().contiguous().t(), torch.bfloat16), whole)
    assert matrix(case.x[:0], torch.bfloat16).shape == (0, 32)


def test_int4_words_hold_eight_inputs_of_an_output() -> None:
    values = torch.randint(-8, 8, (32, 24), dtype=torch.int8)
    words = pack_int4(values)
    assert (words.shape, words.dtype) == ((2, 3, 16), torch.int32)
    for output, k in ((0, 0), (15, 7), (16, 8), (31, 23), (5, 15)):
        word = int(words[output // 16, k // 8, output % 16]) & 0xFFFFFFFF
        assert (word >> (8 * (k % 4) + k % 8 // 4 * 4)) % 16 - 8 == int(values[output, k])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"x": torch.zeros(2, 32, dtype=torch.bfloat16)}, "x .* does not fit a linear of 64 to 16"),
        ({"x": torch.zeros(2, 64)}, r"x .* in torch.float32 does not fit"),
        ({"bias": torch.zeros(64, dtype=torch.bfloat16)}, "bias"),
        ({"input_scale": torch.zeros(16, dtype=torch.bfloat16)}, "scale"),
        ({"dtype": torch.float64}, "give bfloat16 or float32"),
    ],
)
def test_what_does_not_fit_is_refused(kernels: ctypes.CDLL, change: dict[str, Any], problem: str) -> None:
    matrix = native_bf16(kernels, torch.zeros(16, 64, dtype=torch.bfloat16))
    arguments: dict[str, Any] = {"x": torch.zeros(2, 64, dtype=torch.bfloat16), "dtype": torch.bfloat16, **change}
    with pytest.raises(ServeError, match=problem):
        matrix(arguments.pop("x"), arguments.pop("dtype"), **arguments)


@pytest.mark.parametrize("weight", [torch.zeros(16, 64), torch.zeros(64, 16, dtype=torch.bfloat16).t()])
def test_weights_that_are_not_plain_bfloat16_are_refused(kernels: ctypes.CDLL, weight: torch.Tensor) -> None:
    with pytest.raises(ServeError, match="one contiguous bfloat16 matrix"):
        native_bf16(kernels, weight)


@pytest.mark.parametrize(
    ("kind", "outputs", "inputs", "group", "int8"),
    [
        (LinearKind.BF16, 16, 48, 0, False),
        (LinearKind.BF16, 0, 32, 0, False),
        (LinearKind.BF16, 16, 32, 0, True),
        (LinearKind.INT4, 24, 64, 32, False),
        (LinearKind.INT4, 16, 64, 12, False),
        (LinearKind.INT4, 16, 64, 48, False),
        (LinearKind.INT4, 16, 64, 0, False),
        (LinearKind.INT4, 16, 96, 48, True),
        (2, 16, 64, 32, False),
    ],
)
def test_the_library_itself_refuses_shapes_that_it_has_no_kernel_for(
    kernels: ctypes.CDLL, kind: int, outputs: int, inputs: int, group: int, int8: bool
) -> None:
    numbers = torch.zeros(1 << 14)
    at = numbers.data_ptr()
    linear, product = Linear(at, at, kind, outputs, inputs, group), Product(at, None, None, at, 1, 1, int8)
    assert kernels.rh_linear(ctypes.byref(linear), ctypes.byref(product)) == BAD_GEOMETRY


def test_groups_of_next_to_nothing_are_nothing(kernels: ctypes.CDLL) -> None:
    case = random_case(7, "int4 by int8", 4, 32, 64, 32, extras=False)
    clean = case.multiply(kernels, torch.float32)
    case.x[2] = torch.tensor(1, dtype=torch.int16).view(torch.bfloat16)  # the smallest number above 0
    got = case.multiply(kernels, torch.float32)
    assert not got[2].any()
    assert torch.equal(got[[0, 1, 3]], clean[[0, 1, 3]])
