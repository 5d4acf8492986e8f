"""Tables for the page guard, mostly right and broken in places, with sizes of 0 and rows longer than any kernel's span."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

Tables = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""page_table, page_count, expected_tags, page_tags."""

_LIMITS = (-(2**31), -1, 2**31 - 1)


@st.composite
def tables(draw: st.DrawFn) -> Tables:
    """Small ones, with pages, counts and tags in range, a little outside and far outside."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, columns, pages = draw(st.integers(0, 5)), draw(st.integers(0, 9)), draw(st.integers(0, 8))
    odd, odd_counts, wrong_tags = (draw(st.sampled_from((0.0, 0.1, 0.5))) for _ in range(3))

    def some(high: int, shape: tuple[int, ...], outside: float) -> np.ndarray[Any, Any]:
        values = random.integers(0, max(high, 1), shape, dtype=np.int32)
        strange = random.choice(np.array([*_LIMITS, -2, high, high + 1], dtype=np.int32), shape)
        return np.where(random.random(shape) < outside, strange, values).astype(np.int32)

    table, count = some(pages, (rows, columns), odd), some(columns + 1, (rows,), odd_counts)
    tags = random.integers(0, 2**31 - 1, pages, dtype=np.int32)
    return table, count, _expected(table, tags, random.random((rows, columns)) < wrong_tags), tags


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
