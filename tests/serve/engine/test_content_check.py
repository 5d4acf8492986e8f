"""The check of contents by itself: which cells it names, and how many pages it compares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from driving import PAGE_TOKENS

from roundhouse.serve.engine.integrity import ContentCheck
from roundhouse.serve.engine.runtime import PreparedBatch

Memory = npt.NDArray[np.uint8]
"""uint8 [pages, page_bytes]"""


def prepared_for(tables: list[list[int]]) -> PreparedBatch:
    """Rows of full pages whose tags are their numbers plus 100; cells beyond a row's own are −1."""
    columns = max(len(row) for row in tables)
    table = torch.tensor([row + [-1] * (columns - len(row)) for row in tables], dtype=torch.int32)
    counts = torch.tensor([len(row) for row in tables], dtype=torch.int32)
    return PreparedBatch(
        page_table=table,
        page_count=counts,
        expected_tags=torch.where(table < 0, 0, table + 100),
        query_start=torch.arange(len(tables) + 1, dtype=torch.int32),
        context_len=counts * PAGE_TOKENS,
    )


def content_check(memory: Memory, *, share: float, seed: int = 0, sealed: int | None = None) -> ContentCheck:
    """With the first pages of a memory sealed under the tags of :func:`prepared_for`."""
    check = ContentCheck(len(memory), PAGE_TOKENS, memory.__getitem__, share=share, seed=seed)
    for page in range(len(memory) if sealed is None else sealed):
        check._seals.seal(page, page + 100, memory[page])
    return check


@pytest.fixture
def memory() -> Memory:
    return np.random.default_rng(3).integers(0, 256, (40, 64)).astype(np.uint8)


def test_the_first_bad_column_of_every_row_that_holds_the_page_is_told(memory: Memory) -> None:
    check = content_check(memory, share=1.0)
    prepared = prepared_for([[0, 1, 2], [0, 1, 3, 4], [5], [6, 2], [2, 0, 1]])
    assert check.bad_cells(prepared) == []
    assert check.checks == 7
    memory[1, 63] ^= 1
    assert check.bad_cells(prepared) == [(0, 1), (1, 1), (4, 2)]
    memory[2, 0] ^= 1
    assert check.bad_cells(prepared) == [(0, 1), (1, 1), (3, 1), (4, 0)]


def test_cells_that_do_not_count_and_pages_not_written_are_left_alone(memory: Memory) -> None:
    check = content_check(memory, share=1.0, sealed=3)
    prepared = prepared_for([[0, 1, 2], [3, 4, 2]])
    prepared.page_count[:] = torch.tensor([2, 3])
    prepared.context_len[1] = 1  # nothing of this row was computed yet
    memory[2] += 1
    memory[3] += 1  # never sealed
    assert check.bad_cells(prepared) == [(1, 2)]
    assert check.checks == 3


def test_a_page_that_should_have_been_written_under_its_tag_and_was_not_is_found_without_a_sample(memory: Memory) -> None:
    check = content_check(memory, share=1e-9, sealed=3)
    prepared = prepared_for([[0, 1, 2], [0, 3, 2], [0, 1, 2]])
    prepared.expected_tags[2, 0] = 999  # sealed for somebody else
    assert check.bad_cells(prepared) == [(1, 1), (2, 0)]
    prepared.context_len[1] = PAGE_TOKENS + 1  # page 3 is only written now
    assert check.bad_cells(prepared) == [(2, 0)]


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_the_share_says_how_many_pages_are_compared(memory: Memory, share: float) -> None:
    check = content_check(memory, share=share, seed=5)
    prepared = prepared_for([list(range(20)), list(range(20, 40)), list(range(10))])
    for _ in range(500):
        assert check.bad_cells(prepared) == []
    deviation = (20_000 * share * (1 - share)) ** 0.5
    assert abs(check.checks - 20_000 * share) < 4 * deviation
    again = content_check(memory, share=share, seed=5)
    for _ in range(500):
        again.bad_cells(prepared)
    assert again.checks == check.checks


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_a_page_that_changed_is_found_as_often_as_the_share_says_and_then_for_certain(memory: Memory, share: float) -> None:
    """Once found it is told to whoever presents it, as long as it has that tag; a fresh grant of it is not touched by that."""
    prepared = prepared_for([[0, 1, 2], [3, 4], [5, 1]])
    waits = []
    for seed in range(100):
        page = memory.copy()
        check = content_check(page, share=share, seed=seed)
        page[1, 7] ^= 0x10
        waits.append(next(wait for wait in range(1000) if check.bad_cells(prepared)))
        check._share = 0.0
        assert check.bad_cells(prepared) == [(0, 1), (2, 1)]
        assert check.bad_cells(prepared_for([[4, 1]])) == [(0, 1)]
        assert check.bad_cells(prepared_for([[4, 2]])) == []
        granted_again = prepared_for([[4, 1]])
        granted_again.expected_tags[0, 1] = 999
        granted_again.context_len[0] = PAGE_TOKENS + 1  # this step is the first to write there
        assert check.bad_cells(granted_again) == []
    # Steps before the one that finds it are geometrically distributed.
    mean, deviation = (1 - share) / share, (1 - share) ** 0.5 / share
    assert abs(np.mean(waits) - mean) <= 4 * deviation / 100**0.5
