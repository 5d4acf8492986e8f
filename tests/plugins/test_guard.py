"""Every guard against the plain definition, on fresh random inputs, broken ones included."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from roundhouse.plugins.guard import NullGuard, TorchPageGuard
from roundhouse.plugins.page_tag import first_bad_columns


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], ...]:
    rows, columns, pages = draw(st.integers(0, 5)), draw(st.integers(0, 6)), draw(st.integers(0, 8))
    small = st.integers(-2, 9)  # pages, counts and tags in range and a little outside
    table = draw(npst.arrays(np.int32, (rows, columns), elements=small))
    count = draw(npst.arrays(np.int32, (rows,), elements=small))
    tags = draw(npst.arrays(np.int32, (pages,), elements=st.integers(0, 2**31 - 1)))
    expected = np.zeros((rows, columns), dtype=np.int32)
    in_range = (table >= 0) & (table < pages)
    expected[in_range] = tags[table[in_range]]  # mostly right, then made wrong in places
    wrong = draw(npst.arrays(np.bool_, (rows, columns), elements=st.integers(0, 9).map(lambda n: n == 0)))
    return table, count, np.where(wrong, expected ^ 1, expected).astype(np.int32), tags


def one_by_one(table: Any, count: Any, expected: Any, tags: Any) -> list[int]:
    """The definition once more, cell by cell."""
    found = []
    for row in range(len(table)):
        columns = len(table[row])
        first = 0 if count[row] < 0 else -1
        for column in range(min(int(count[row]), columns)):
            page = table[row][column]
            if not 0 <= page < len(tags) or tags[page] != expected[row][column]:
                first = column
                break
        else:
            if count[row] > columns:
                first = columns
        found.append(first)
    return found


@given(tables())
def test_the_definition_agrees_with_a_cell_by_cell_loop(inputs: Any) -> None:
    assert first_bad_columns(*inputs).tolist() == one_by_one(*inputs)


@given(tables())
def test_the_torch_guard_agrees_with_the_definition(inputs: Any) -> None:
    table, count, expected, tags = inputs
    first = first_bad_columns(*inputs)
    bad = TorchPageGuard().bad_rows(torch.from_numpy(table), torch.from_numpy(count), torch.from_numpy(expected), tags)
    assert bad == [(row, column) for row, column in enumerate(first.tolist()) if column >= 0]


@given(tables())
def test_the_null_guard_finds_nothing(inputs: Any) -> None:
    table, count, expected, tags = inputs
    assert NullGuard().bad_rows(torch.from_numpy(table), torch.from_numpy(count), torch.from_numpy(expected), tags) == []
