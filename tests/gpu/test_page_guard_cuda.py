"""The page guard on a GPU against the definition: torch's operations, and the kernel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from guard_tables import Tables, long_tables, tables
from hypothesis import given
from hypothesis import strategies as st
from native_build import NativeBuild

from roundhouse.plugins.native_guard import CudaGuard, FirstBad, load_cuda_guard
from roundhouse.plugins.page_guard_op import page_guard, use_kernels
from roundhouse.plugins.page_tag import first_bad_columns
from roundhouse.plugins.torch_guard import torch_page_guard

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")


@pytest.fixture(scope="module", params=["torch", "kernel"])
def guard(request: pytest.FixtureRequest) -> Iterator[FirstBad]:
    """The operation on a GPU, with each implementation."""
    if request.param == "kernel":
        build: NativeBuild = request.getfixturevalue("native_build")
        use_kernels("cuda", CudaGuard(load_cuda_guard(build.library("roundhouse_page_guard_cuda"))))
    yield page_guard
    use_kernels("cuda", torch_page_guard)


def on_gpu(inputs: Tables) -> list[torch.Tensor]:
    return [torch.from_numpy(each).cuda() for each in inputs]


@given(inputs=st.one_of(tables(), long_tables()), offset=st.integers(0, 3))
def test_it_agrees_with_the_definition_at_any_alignment(guard: FirstBad, inputs: Tables, offset: int) -> None:
    moved = [torch.cat((each.new_zeros(offset), each.flatten()))[offset:].view(each.shape) for each in on_gpu(inputs)]
    np.testing.assert_array_equal(guard(*moved).cpu().numpy(), first_bad_columns(*inputs))


def largest() -> Tables:
    """64 requests of 4,096 pages."""
    random = np.random.default_rng(0)
    table = random.permutation(64 * 4096).astype(np.int32).reshape(64, 4096)
    tags = random.integers(1, 2**31 - 1, table.size, dtype=np.int32)
    return table, np.full(64, 4096, np.int32), tags[table], tags


def test_the_largest_batch_and_its_last_cell(guard: FirstBad) -> None:
    inputs = on_gpu(largest())
    assert (guard(*inputs) == -1).all()
    inputs[2][63, 4095] ^= 1
    assert guard(*inputs)[63] == 4095


def test_it_never_waits_for_the_gpu(guard: FirstBad) -> None:
    inputs = on_gpu(largest())
    guard(*inputs)
    torch.cuda.set_sync_debug_mode("error")
    try:
        guard(*inputs)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_it_runs_in_a_captured_graph(guard: FirstBad) -> None:
    """What is captured reads the tables anew with every replay."""
    inputs = on_gpu(largest())
    guard(*inputs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        first_bad = guard(*inputs)
    inputs[2][7, 9] ^= 1
    graph.replay()
    assert first_bad.nonzero().flatten().tolist() == list(range(64))
    assert first_bad[7] == 9
    assert int((first_bad == -1).sum()) == 63
