"""Seals of pages: any change of content is seen, and a seal says nothing for another tag."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import assume, given
from hypothesis import strategies as st

from roundhouse.plugins.page_content import PageSeals

PAGES = 4
Content = npt.NDArray[np.uint8]

any_page = st.integers(0, PAGES - 1)
tags = st.integers(1, 2**31 - 1)


@st.composite
def contents(draw: st.DrawFn, *, least_rows: int = 1) -> Content:
    """uint8 [rows, row_bytes]: the page of one field and layer."""
    shape = draw(st.integers(least_rows, 16)), draw(st.integers(1, 64))
    seed = draw(st.integers(0, 2**32 - 1))
    few = draw(st.sampled_from([2, 256]))  # with few values, rows differ in little
    return np.random.default_rng(seed).integers(0, few, shape).astype(np.uint8)


@given(page=any_page, tag=tags, content=contents())
def test_what_was_sealed_is_intact_for_its_holder(page: int, tag: int, content: Content) -> None:
    seals = PageSeals(PAGES)
    seals.seal(page, tag, content)
    assert seals.is_sealed(page, tag)
    assert seals.is_intact(page, tag, content.copy())


@given(page=any_page, tag=tags, content=contents(), data=st.data())
def test_any_changed_bit_is_seen(page: int, tag: int, content: Content, data: st.DataObject) -> None:
    seals = PageSeals(PAGES)
    seals.seal(page, tag, content)
    at, bit = data.draw(st.integers(0, content.size - 1)), data.draw(st.integers(0, 7))
    content.flat[at] ^= 1 << bit
    assert not seals.is_intact(page, tag, content)
    content.flat[at] ^= 1 << bit
    assert seals.is_intact(page, tag, content)


@given(page=any_page, tag=tags, content=contents(least_rows=2), data=st.data())
def test_rows_that_changed_places_are_seen(page: int, tag: int, content: Content, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(content))))
    assume(bool((content[order] != content).any()))
    seals = PageSeals(PAGES)
    seals.seal(page, tag, content)
    content[:] = content[order]
    assert not seals.is_intact(page, tag, content)


@given(page=any_page, tag=tags, other=tags, content=contents())
def test_a_seal_says_nothing_for_another_tag(page: int, tag: int, other: int, content: Content) -> None:
    assume(tag != other)
    seals = PageSeals(PAGES)
    seals.seal(page, tag, content)
    assert not seals.is_sealed(page, other)
    assert not seals.is_intact(page, other, content)


@given(page=any_page, tag=tags, other=tags, first=contents(), second=contents())
def test_the_last_seal_counts(page: int, tag: int, other: int, first: Content, second: Content) -> None:
    seals = PageSeals(PAGES)
    seals.seal(page, tag, first)
    seals.seal(page, other, second)
    assert seals.is_sealed(page, other)
    assert seals.is_intact(page, other, second)
    assert seals.is_sealed(page, tag) == (tag == other)
    assert seals.is_intact(page, tag, first) == (tag == other and first.tobytes() == second.tobytes())


@given(tag=tags)
def test_pages_are_sealed_one_by_one(tag: int) -> None:
    seals = PageSeals(PAGES)
    assert not any(seals.is_sealed(page, tag) for page in range(PAGES))
    for page in range(PAGES):
        seals.seal(page, tag, np.full(8, page, dtype=np.uint8))
        assert [seals.is_sealed(other, tag) for other in range(PAGES)] == [other <= page for other in range(PAGES)]
    for page in range(PAGES):
        for other in range(PAGES):
            assert seals.is_intact(page, tag, np.full(8, other, dtype=np.uint8)) == (page == other)


def test_a_page_is_read_where_it_lies() -> None:
    """What is sealed and compared is a row of the pool's memory, not a copy of it."""
    pool = np.zeros((PAGES, 64), dtype=np.uint8)
    seals = PageSeals(PAGES)
    seals.seal(1, 7, pool[1])
    pool[2] = 1
    assert seals.is_intact(1, 7, pool[1])
    pool[1, 63] = 1
    assert not seals.is_intact(1, 7, pool[1])
