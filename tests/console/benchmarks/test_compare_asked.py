"""The address of a comparison says one thing in one way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.console.benchmarks.compare_asked import CompareAsked
from roundhouse.console.benchmarks.compare_quantities import COMPARED_BY
from roundhouse.console.benchmarks.records import MOST_CHOSEN
from roundhouse.console.errors import FieldError
from roundhouse.errors import UsageError

VALUES = st.one_of(st.sampled_from(["a", "b", "c", " a", "a,b", "", "1", "08"]), st.text(max_size=8))
PAIRS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["run", "base", "without", "all", "else"]), VALUES),
        st.tuples(st.just("at"), st.sampled_from(["", "1", "08", "64"])),
        st.tuples(st.just("by"), st.sampled_from(["", " ttft_p99", *COMPARED_BY])),
    ),
    max_size=12,
)


@given(PAIRS)
def test_what_was_read_is_read_again_as_it_was(pairs: list[tuple[str, str]]) -> None:
    asked = CompareAsked.read(pairs)
    assert CompareAsked.read(asked.pairs) == asked
    assert len(set(asked.ids)) == len(asked.ids)
    assert asked.base is None or asked.base in asked.ids[1:]
    assert not set(asked.ids) & {value.strip() for key, value in pairs if key == "without"}


def test_the_last_base_and_concurrency_hold() -> None:
    asked = CompareAsked.read([("run", "a"), ("run", "b"), ("base", "a"), ("at", "8"), ("base", "b"), ("at", "1")])
    assert (asked.base, asked.at) == ("b", 1)
    assert asked.url(base=None) == "/benchmarks/compare?run=a&run=b&at=1"


def test_too_many_and_nonsense_are_refused() -> None:
    ids = [("run", str(n)) for n in range(MOST_CHOSEN)]
    assert len(CompareAsked.read(ids).ids) == MOST_CHOSEN
    with pytest.raises(UsageError, match="201 runs are too many"):
        CompareAsked.read([*ids, ("run", "more")])
    for text in ("none", "-1", "0", "1.5", "٣"):
        with pytest.raises(FieldError):
            CompareAsked.read([("at", text)])
