"""Tags: drawn anew for each grant, unique among live pages, 0 when nobody holds the page."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.plugins.page_tag import FREE, NullTracker, PageTagTracker, first_bad_columns

LARGEST = 2**31 - 1


def test_tags_stay_unique_and_positive_across_the_wrap() -> None:
    tracker = PageTagTracker(4, first_tag=LARGEST - 1)
    assert [tracker.grant(page) for page in range(4)] == [LARGEST - 1, LARGEST, 1, 2]
    tracker.clear(0)
    assert tracker.page_tags.tolist() == [FREE, LARGEST, 1, 2]


def test_a_wrapped_counter_skips_tags_that_are_still_in_use() -> None:
    tracker = PageTagTracker(3)
    assert [tracker.grant(0), tracker.grant(1)] == [1, 2]
    tracker = PageTagTracker(3, first_tag=LARGEST)
    assert [tracker.grant(0), tracker.grant(1)] == [LARGEST, 1]
    # A long life later the counter is back where these two tags were issued.
    tracker._next = LARGEST
    assert tracker.grant(2) == 2


def test_granting_a_held_page_again_draws_a_new_tag() -> None:
    tracker = PageTagTracker(1)
    assert tracker.grant(0) != tracker.grant(0)


def test_an_overwritten_table_does_not_free_another_page_s_tag() -> None:
    tracker = PageTagTracker(3, first_tag=LARGEST)
    first, second = tracker.grant(0), tracker.grant(1)
    tracker.page_tags[0] = second  # a fault
    tracker.clear(0)
    tracker._next = second
    assert tracker.grant(2) not in (first, second)
    assert tracker.page_tags.tolist() == [FREE, second, 2]


def test_what_was_issued_is_not_read_from_the_table() -> None:
    tracker = PageTagTracker(2, first_tag=7)
    tracker.grant(0)
    tracker.page_tags[:] = 99  # a fault
    assert [tracker.issued(0), tracker.issued(1)] == [7, FREE]
    tracker.clear(0)
    assert tracker.issued(0) == FREE


def test_the_null_tracker_keeps_no_table() -> None:
    tracker = NullTracker()
    assert tracker.grant(7) == tracker.issued(7) == FREE
    tracker.clear(7)
    assert len(tracker.page_tags) == 0


@pytest.mark.parametrize(
    ("table", "count", "expected", "first"),
    [
        ([3, 1, -1], 2, [30, 10, 0], -1),
        ([3, 1, -1], 2, [30, 11, 0], 1),
        ([3, 1, 0], 2, [30, 10, 99], -1),  # beyond the count nothing is looked at
        ([3, -1, 1], 3, [30, 0, 10], 1),
        ([3, 4, 1], 3, [30, 0, 10], 1),
        ([3, 1, 0], 4, [30, 10, 5], 3),
        ([3, 1, 0], -1, [30, 10, 5], 0),
        ([3, 1, 0], 0, [9, 9, 9], -1),
    ],
)
def test_the_first_bad_column(table: list[int], count: int, expected: list[int], first: int) -> None:
    tags = np.array([5, 10, 20, 30], dtype=np.int32)
    arrays = (np.array([table], dtype=np.int32), np.array([count], dtype=np.int32), np.array([expected], dtype=np.int32))
    assert first_bad_columns(*arrays, tags).tolist() == [first]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=60), st.integers(1, LARGEST))
def test_live_tags_are_always_unique(steps: list[tuple[int, bool]], first_tag: int) -> None:
    tracker = PageTagTracker(6, first_tag=first_tag)
    held: dict[int, int] = {}
    for page, grant in steps:
        if grant:
            held[page] = tracker.grant(page)
        else:
            tracker.clear(page)
            held.pop(page, None)
        assert len(set(held.values())) == len(held)
        assert tracker.page_tags.tolist() == [held.get(page, FREE) for page in range(6)]
