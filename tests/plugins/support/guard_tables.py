"""Tables for the page guard, mostly right and broken in places, with sizes of 0 and rows longer than any kernel's span."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

Tables = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""page_table, page_count, expected_tags, page_tags."""

_LIMITS = (-(2**31), -1, 2**31 - 1)


@st.composite
def tables(draw: st.DrawFn) -> Tables:
    rows, columns, pages = draw(st.integers(0, 5)), draw(st.integers(0, 9)), draw(st.integers(0, 8))
    small = st.one_of(st.integers(-2, 9), st.sampled_from(_LIMITS))  # in range and a little or far outside
    table = draw(npst.arrays(np.int32, (rows, columns), elements=small))
    count = draw(npst.arrays(np.int32, (rows,), elements=small))
    tags = draw(npst.arrays(np.int32, (pages,), elements=st.integers(0, 2**31 - 1)))
    wrong = draw(npst.arrays(np.bool_, (rows, columns), elements=st.integers(0, 9).map(lambda n: n == 0)))
    return table, count, _expected(table, tags, wrong), tags


@st.composite
def long_tables(draw: st.DrawFn) -> Tables:
    """Rows of up to some thousand cells with a fault or two anywhere."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, columns, pages = draw(st.integers(1, 4)), draw(st.integers(500, 3000)), draw(st.integers(1, 5000))
    table = random.integers(0, pages, (rows, columns), dtype=np.int32)
    count = random.integers(0, columns + 1, rows, dtype=np.int32)
    tags = random.integers(1, 2**31 - 1, pages, dtype=np.int32)
    faults = draw(st.lists(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1), st.booleans()), max_size=3))
    wrong = np.zeros(table.shape, np.bool_)
    for row, column, in_the_table in faults:
        if in_the_table:
            table[row, column] = draw(st.sampled_from((*_LIMITS, pages)))
        else:
            wrong[row, column] = True
    return table, count, _expected(table, tags, wrong), tags


def _expected(table: np.ndarray[Any, Any], tags: np.ndarray[Any, Any], wrong: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    expected = np.zeros(table.shape, dtype=np.int32)
    in_range = (table >= 0) & (table < len(tags))
    expected[in_range] = tags[table[in_range]]
    return np.where(wrong, expected ^ 1, expected).astype(np.int32)
