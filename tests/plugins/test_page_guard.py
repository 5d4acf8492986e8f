"""The native guard and torch's operation against the definition on fresh random inputs, and how torch takes the operation."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from guard_tables import Tables, long_tables, tables
from hypothesis import given, settings
from hypothesis import strategies as st

from roundhouse.errors import ServeError, SetupError
from roundhouse.plugins.native_guard import CpuGuard, CudaGuard, FirstBad, load_cuda_guard
from roundhouse.plugins.page_guard_op import page_guard, use_kernels
from roundhouse.plugins.page_tag import first_bad_columns
from roundhouse.plugins.torch_guard import torch_page_guard

NO_CLOCK = settings(deadline=None)
ANY = st.one_of(tables(), long_tables())


def tensors(inputs: Tables) -> list[torch.Tensor]:
    return [torch.from_numpy(each) for each in inputs]


def assert_defined(guard: FirstBad, inputs: Tables) -> None:
    first_bad = guard(*tensors(inputs))
    assert first_bad.dtype == torch.int32
    np.testing.assert_array_equal(first_bad.numpy(), first_bad_columns(*inputs))


@pytest.fixture(params=["torch", "native"])
def implementation(request: pytest.FixtureRequest, kernels: ctypes.CDLL) -> Iterator[FirstBad]:
    """What the operation runs on the CPU."""
    guard: FirstBad = CpuGuard(kernels) if request.param == "native" else torch_page_guard
    use_kernels("cpu", guard)
    yield guard
    use_kernels("cpu", torch_page_guard)


@NO_CLOCK
@given(inputs=ANY)
def test_the_native_guard_agrees_with_the_definition(kernels: ctypes.CDLL, inputs: Tables) -> None:
    assert_defined(CpuGuard(kernels), inputs)


@NO_CLOCK
@given(inputs=ANY)
def test_the_torch_guard_agrees_with_the_definition(inputs: Tables) -> None:
    assert_defined(torch_page_guard, inputs)


@pytest.mark.parametrize("native", [False, True])
@NO_CLOCK
@given(inputs=ANY)
def test_the_operation_agrees_with_the_definition(kernels: ctypes.CDLL, native: bool, inputs: Tables) -> None:
    use_kernels("cpu", CpuGuard(kernels) if native else torch_page_guard)
    try:
        assert_defined(page_guard, inputs)
    finally:
        use_kernels("cpu", torch_page_guard)


@NO_CLOCK
@given(inputs=tables(), step=st.integers(2, 3))
def test_tables_with_gaps_are_taken_as_they_read(kernels: ctypes.CDLL, inputs: Tables, step: int) -> None:
    spread = tuple(np.repeat(each, step, axis=-1)[..., ::step] for each in inputs)
    assert_defined(CpuGuard(kernels), spread)  # type: ignore[arg-type]


@NO_CLOCK
@given(inputs=tables())
def test_rows_may_begin_at_any_alignment(kernels: ctypes.CDLL, inputs: Tables) -> None:
    for offset in range(4):
        moved = tuple(
            np.concatenate((np.zeros(offset, np.int32), each.ravel()))[offset:].reshape(each.shape) for each in inputs
        )
        assert_defined(CpuGuard(kernels), moved)  # type: ignore[arg-type]


def example(rows: int = 3, columns: int = 5) -> Tables:
    table = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    tags = np.arange(1, rows * columns + 1, dtype=np.int32)
    return table, np.full(rows, columns, dtype=np.int32), tags[table], tags


def test_torch_s_own_checks_of_an_operation(implementation: FirstBad) -> None:
    torch.library.opcheck(torch.ops.roundhouse.page_guard.default, tensors(example()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch's compiler
def test_it_stays_in_a_compiled_graph_of_changing_shapes(implementation: FirstBad) -> None:
    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def rows_to_drop(*each: torch.Tensor) -> torch.Tensor:
        return page_guard(*each) >= 0

    for rows, columns in ((3, 5), (2, 7), (6, 4)):
        inputs = example(rows, columns)
        assert not rows_to_drop(*tensors(inputs)).any()
        inputs[2][1, 3] += 1
        assert rows_to_drop(*tensors(inputs)).tolist() == [row == 1 for row in range(rows)]


BROKEN = {
    "int64": lambda table, count, expected, tags: (table.long(), count, expected, tags),
    "a row too few": lambda table, count, expected, tags: (table, count[1:], expected, tags),
    "other columns": lambda table, count, expected, tags: (table, count, expected[:, 1:], tags),
    "no rows": lambda table, count, expected, tags: (table[0], count, expected[0], tags),
    "a matrix of tags": lambda table, count, expected, tags: (table, count, expected, tags[None]),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_tables_that_do_not_fit_are_refused(implementation: FirstBad, broken: str) -> None:
    each = BROKEN[broken](*tensors(example()))
    for guard in (implementation, page_guard):
        with pytest.raises(ServeError, match="the page guard takes"):
            guard(*each)
    with pytest.raises(ServeError, match="the page guard takes"):
        page_guard(*(table.to("meta") for table in each))


def test_the_fake_operation_knows_the_shape() -> None:
    first_bad = page_guard(*(each.to("meta") for each in tensors(example())))
    assert (first_bad.shape, first_bad.dtype, first_bad.device.type) == ((3,), torch.int32, "meta")


def test_a_guard_takes_tables_of_its_own_device(kernels: ctypes.CDLL) -> None:
    with pytest.raises(ServeError, match="takes tables on cpu, not on meta"):
        CpuGuard(kernels)(*(each.to("meta") for each in tensors(example())))

    class Library:
        rh_page_guard_cuda: Any = None

    with pytest.raises(ServeError, match="takes tables on cuda, not on cpu"):
        CudaGuard(Library())(*tensors(example()))  # type: ignore[arg-type]


def test_a_cuda_library_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"none\.so") as failed:
        load_cuda_guard(tmp_path / "none.so")
    assert failed.value.hint == "docs/native.md says how it is built."
