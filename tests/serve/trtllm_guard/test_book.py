"""The book of grants and what is known of the reuse tree, without a manager."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.plugins.page_tag import first_bad_columns
from roundhouse.serve.trtllm_guard.book import PageBook
from roundhouse.serve.trtllm_guard.prefixes import NEVER_ISSUED, PrefixBook

PAGE_TOKENS = 4


def request(number: int, tokens: list[int] | None = None, *, found: int = 0, salt: int | None = None) -> Any:
    tokens = tokens or [1, 2, 3, 4, 5, 6, 7, 8, 9]
    return SimpleNamespace(
        py_request_id=number,
        prepopulated_prompt_len=found,
        context_current_position=0,
        context_chunk_size=len(tokens),
        max_beam_num_tokens=len(tokens),
        is_dummy_request=False,
        lora_task_id=None,
        cache_salt_id=salt,
        get_tokens=lambda beam: tokens,
    )


def book(pages: int = 16, *, reuse: bool = True) -> PageBook:
    return PageBook(pages, PAGE_TOKENS, reuse=reuse)


def bad_columns(kept: PageBook, *presented: tuple[Any, list[int]]) -> list[int]:
    tables = kept.tables([each for each, _ in presented], [pages for _, pages in presented])
    found = first_bad_columns(tables.page_table, tables.page_count, tables.expected_tags, kept.tracker.page_tags)
    columns: list[int] = found.tolist()
    return columns


def test_a_row_presents_the_tags_that_were_issued_with_its_pages() -> None:
    kept, one, other = book(), request(1), request(2)
    kept.note(one, [3, 5])
    kept.note(other, [4])
    kept.note(one, [3, 5, 9])
    tables = kept.tables([one, other], [[3, 5, 9], [4]])
    assert tables.expected_tags.tolist() == [[1, 2, 4], [3, NEVER_ISSUED, NEVER_ISSUED]]
    assert tables.page_table.tolist() == [[3, 5, 9], [4, -1, -1]]
    assert tables.page_count.tolist() == [3, 1]
    assert bad_columns(kept, (one, [3, 5, 9]), (other, [4])) == [-1, -1]


@given(st.lists(st.integers(-5, 30), min_size=1, max_size=6), st.binary(min_size=64, max_size=64))
def test_expected_tags_are_never_read_from_the_table(pages: list[int], noise: bytes) -> None:
    """Whatever a fault does to the table, what is expected stays as it was issued."""
    kept, one = book(), request(1)
    kept.note(one, pages)
    before = kept.tables([one], [pages]).expected_tags
    kept.tracker.page_tags[:] = np.frombuffer(noise, dtype=np.int32)
    assert (kept.tables([one], [pages]).expected_tags == before).all()


def test_a_page_that_was_granted_again_is_its_former_holder_s_no_more() -> None:
    kept, one, other = book(), request(1), request(2)
    kept.note(one, [3, 5])
    kept.note(other, [5])
    assert bad_columns(kept, (one, [3, 5]), (other, [5])) == [1, -1]
    kept.release(one)  # lets go of page 3 only
    assert bad_columns(kept, (other, [5])) == [-1]


def test_a_page_that_is_none_is_never_right() -> None:
    kept, one = book(), request(1)
    kept.note(one, [3, 99, -1])
    assert bad_columns(kept, (one, [3, 99, -1])) == [1]


def test_pages_that_went_back_carry_no_tag_without_a_reuse_tree() -> None:
    kept, one = book(reuse=False), request(1)
    kept.note(one, [3, 5])
    kept.release(one)
    kept.release(one)
    assert not kept.tracker.page_tags.any()
    assert kept.counts().free == 16


def test_pages_in_the_reuse_tree_keep_their_tags_until_they_are_granted_again() -> None:
    kept, one, other = book(), request(1), request(2, [7, 7, 7])
    kept.note(one, [3, 5, 6])
    kept.release(one)
    assert kept.tracker.page_tags[[3, 5, 6]].tolist() == [1, 2, 0]  # the last token's page held nothing yet
    assert (kept.counts().cached, kept.counts().free) == (2, 14)
    kept.note(other, [3])
    assert kept.tracker.page_tags[3] == 4
    late = request(3, found=8)
    kept.note(late, [3, 5, 8])
    assert bad_columns(kept, (late, [3, 5, 8])) == [0]


def test_a_hit_copies_the_tag_that_was_issued() -> None:
    kept, one = book(), request(1)
    kept.note(one, [3, 5, 6], in_context=True)
    kept.tracker.page_tags[3] = 77
    late = request(2, found=8)
    kept.note(late, [3, 5, 8])
    assert kept.tables([late], [[3, 5, 8]]).expected_tags.tolist() == [[1, 2, 4]]
    assert bad_columns(kept, (late, [3, 5, 8])) == [0]


def test_a_shared_page_is_free_of_its_tag_when_the_last_holder_lets_go_and_the_tree_is_emptied() -> None:
    kept, one, late = book(), request(1), request(2, found=8)
    kept.note(one, [3, 5, 6], in_context=True)
    kept.note(late, [3, 5, 8])
    kept.forget_prefixes()
    kept.release(one)
    assert bad_columns(kept, (late, [3, 5, 8])) == [-1]
    kept.forget_prefixes()
    kept.release(late)
    kept.forget_prefixes()
    assert not kept.tracker.page_tags.any()


@pytest.mark.parametrize("late", [request(2, [9, 9, 9, 9, 5], found=4), request(2, found=4, salt=3)])
def test_a_page_found_for_another_prefix_or_tenant_is_wrong(late: Any) -> None:
    kept, one = book(), request(1)
    kept.note(one, [3, 5, 6])
    kept.release(one)
    kept.note(late, [3, 8])
    assert bad_columns(kept, (late, [3, 8])) == [0]


def test_of_a_prompt_can_be_found_what_is_computed_after_the_step() -> None:
    kept, one = book(), request(1)
    one.context_chunk_size = 4
    kept.note(one, [3, 5, 6], in_context=True)
    early, late = request(2, found=8), request(3, found=8)
    kept.note(early, [3, 5, 8])
    assert bad_columns(kept, (early, [3, 5, 8])) == [1]
    one.context_current_position = 4
    kept.note(one, [3, 5, 6], in_context=True)
    kept.note(late, [3, 5, 9])
    assert bad_columns(kept, (late, [3, 5, 9])) == [-1]


def test_of_a_prompt_that_was_left_nobody_may_find_what_was_never_computed() -> None:
    kept, one = book(), request(1)
    one.context_chunk_size = 4
    kept.note(one, [3, 5, 6], in_context=True)
    kept.release(one)
    assert kept.counts().cached == 1
    late = request(2, found=8)
    kept.note(late, [3, 5, 8])
    assert bad_columns(kept, (late, [3, 5, 8])) == [1]


def test_a_page_filled_in_part_is_taken_over_by_the_prefix_that_it_was_stored_for() -> None:
    kept, one = book(), request(1, [1, 2, 3, 4, 5, 6, 7])
    kept.note(one, [3, 6])
    kept.release(one)
    late = request(2, [1, 2, 3, 4, 5, 6, 7], found=6)
    kept.note(late, [3, 6])
    assert bad_columns(kept, (late, [3, 6])) == [-1]
    assert kept.tables([late], [[3, 6]]).expected_tags.tolist() == [[1, 3]]


@pytest.mark.parametrize("page", [6, 8])
def test_a_page_filled_in_part_with_something_else_is_wrong(page: int) -> None:
    kept, one, other = book(), request(1, [1, 2, 3, 4, 5, 6, 7]), request(2, [9])
    kept.note(one, [3, 6])
    kept.release(one)
    kept.note(other, [6])
    late = request(3, [1, 2, 3, 4, 5, 6, 7], found=6)
    kept.note(late, [3, page])
    assert bad_columns(kept, (late, [3, page])) == [1]


def test_tokens_that_are_taken_back_give_their_pages_back() -> None:
    kept, one = book(), request(1)
    kept.note(one, [3, 5, 6])
    kept.cut(1, 2)
    assert kept.tracker.page_tags[6] == 0
    kept.note(one, [3, 5, 7])
    assert bad_columns(kept, (one, [3, 5, 7])) == [-1]
    kept.cut(99, 0)


def test_a_condemned_request_s_pages_stay_its_own() -> None:
    kept, one = book(), request(1)
    kept.note(one, [3, 5])
    kept.condemn(1)
    kept.quarantine(1)
    kept.quarantine(1)
    assert kept.is_condemned(1)
    assert (kept.counts().quarantined, kept.counts().used, kept.counts().free) == (2, 0, 14)
    assert kept.tracker.page_tags[[3, 5]].tolist() == [1, 2]


def test_an_event_s_history_names_who_had_a_page() -> None:
    kept, one, other = book(), request(1), request(2)
    kept.begin_step()
    kept.note(one, [3])
    kept.begin_step()
    kept.note(other, [3])
    assert [(each.request_id, each.step, each.how) for each in kept.history.last_holders(3)] == [
        ("2", 2, "granted"),
        ("1", 1, "granted"),
    ]


def test_a_key_depends_on_every_token_up_to_its_page_s_end_and_on_the_kind() -> None:
    keys = PrefixBook(1, PAGE_TOKENS).keys
    tokens = list(range(10))
    mine = keys(tokens, None)
    assert len(mine) == 3
    assert keys(tokens[:8], None) == mine[:2]
    assert keys(tokens, 1)[0] != mine[0]
    assert keys([99, *tokens[1:]], None)[1] != mine[1]
    assert keys(tokens[:9], None)[2] != mine[2]
    assert keys([], None) == []
