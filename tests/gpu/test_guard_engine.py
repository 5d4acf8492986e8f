"""The page guard as an engine of TensorRT on a GPU, from the library and from the PTX, against the definition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from guard_tables import Tables, long_tables, tables
from hypothesis import given
from hypothesis import strategies as st
from native_build import TENSORRT, NativeBuild

from roundhouse.plugins.page_guard_op import page_guard, use_kernels
from roundhouse.plugins.page_tag import first_bad_columns
from roundhouse.plugins.tensorrt_guard import GuardLimits, build_guard_engine
from roundhouse.plugins.tensorrt_guard_engine import GuardEngine
from roundhouse.plugins.torch_guard import torch_page_guard

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")

LIMITS = GuardLimits(rows=64, columns=4096, pages=64 * 4096)


@pytest.fixture(scope="module", params=["library", "ptx"])
def stream(request: pytest.FixtureRequest, native_build: NativeBuild) -> Iterator[torch.cuda.Stream]:
    """A stream of the test's own; the operation runs the engine."""
    pytest.importorskip("tensorrt", reason="TensorRT cannot be imported")
    if request.param == "library" and native_build.tensorrt_headers is None:
        pytest.skip(f"{TENSORRT} does not name TensorRT's headers")
    folder = native_build.folder
    plugin = folder / "page_guard.ptx" if request.param == "ptx" else native_build.library("roundhouse_kv_page_guard")
    use_kernels("cuda", GuardEngine(build_guard_engine(plugin, LIMITS), LIMITS, plugin))
    yield torch.cuda.Stream()
    use_kernels("cuda", torch_page_guard)


def answer(stream: torch.cuda.Stream, inputs: Tables, *, offset: int = 0) -> list[int]:
    with torch.cuda.stream(stream):
        on_gpu = [torch.from_numpy(each).cuda() for each in inputs]
        moved = [torch.cat((each.new_zeros(offset), each.flatten()))[offset:].view(each.shape) for each in on_gpu]
        first_bad: list[int] = page_guard(*moved).tolist()
    return first_bad


@given(inputs=st.one_of(tables(), long_tables()), offset=st.integers(0, 3))
def test_the_engine_agrees_with_the_definition(stream: torch.cuda.Stream, inputs: Tables, offset: int) -> None:
    assert answer(stream, inputs, offset=offset) == first_bad_columns(*inputs).tolist()


def test_the_largest_batch_and_its_last_cell(stream: torch.cuda.Stream) -> None:
    random = np.random.default_rng(0)
    table = random.permutation(LIMITS.pages).astype(np.int32).reshape(LIMITS.rows, LIMITS.columns)
    tags = random.integers(1, 2**31 - 1, LIMITS.pages, dtype=np.int32)
    inputs = (table, np.full(LIMITS.rows, LIMITS.columns, np.int32), tags[table], tags)
    assert answer(stream, inputs) == [-1] * LIMITS.rows
    inputs[2][-1, -1] ^= 1
    assert answer(stream, inputs) == [-1] * (LIMITS.rows - 1) + [LIMITS.columns - 1]
