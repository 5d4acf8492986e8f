"""From what a front says of its pages to rows, counts and cells."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.console.database.base import utc_now
from roundhouse.console.deployments.records import TimedSample
from roundhouse.console.errors import ConflictError
from roundhouse.console.page_maps.cells import cells_of, counted_cells
from roundhouse.console.page_maps.records import PoolPages
from roundhouse.console.page_maps.telling import WORST, counted_pages, told_pages
from roundhouse.serve.page_map import PAGE_STATES, HeldBy, HoldingRequest, PageMap, PageRun
from roundhouse.serve.triton.samples import Sample

MINE = HoldingRequest("3f0c5b7e" * 4, "mine")
OTHER = HoldingRequest("77be01aa" * 4)
MAP = PageMap(
    pages=10,
    held_by=[HeldBy([MINE]), HeldBy([MINE, OTHER], more=3, prefix_cache=True), HeldBy([], prefix_cache=True)],
    runs=[
        PageRun(2, "used", 118, 0),
        PageRun(1, "shared", 7, 1),
        PageRun(1, "used", 99, 0),
        PageRun(1, "quarantined", 0, -1),
        PageRun(1, "shared", 12, 2),
        PageRun(1, "used", 5, -1),
        PageRun(3, "free", 0, -1),
    ],
)


def test_rows_say_who_holds_what_the_worst_first() -> None:
    pool = told_pages("aaaaaaaa", MAP)
    assert pool.counts == {"free": 3, "used": 4, "shared": 2, "quarantined": 1}
    rows = [(row.state, row.held_by.text, row.pages, [(r.text, r.tags) for r in row.ranges]) for row in pool.rows]
    assert rows == [
        ("quarantined", "", 1, [("4", "")]),
        ("used", "request 3f0c5b7e (mine)", 3, [("0–1", "118–119"), ("3", "99")]),
        ("used", "", 1, [("6", "5")]),
        (
            "shared",
            "request 3f0c5b7e (mine), request 77be01aa, 3 more and the prefix cache",
            1,
            [("2", "7")],
        ),
        ("shared", "the prefix cache", 1, [("5", "12")]),
        ("free", "", 3, [("7–9", "")]),
    ]


def test_a_cell_of_one_page_says_what_its_whole_run_is() -> None:
    cells = cells_of(MAP, 10, marked=1)
    assert cells.pages_per_cell == 1
    assert [cell.state for cell in cells.cells] == [run.state for run in MAP.runs for _ in range(run.pages)]
    assert cells.cells[0].text == "pages 0–1: in use, tags 118–119, held by request 3f0c5b7e (mine)"
    assert cells.cells[6].text == "page 6: in use, tag 5, held by nobody that is known"
    assert cells.cells[9].text == "pages 7–9: free"
    assert [cell.marked for cell in cells.cells].index(True) == 1
    assert cells.marked == "page 1: in use, tag 119, held by request 3f0c5b7e (mine)"


@pytest.mark.parametrize("most", [10, 4, 3, 1])
@pytest.mark.parametrize("marked", [-1, 10, 11, 12])
def test_a_page_that_the_pool_does_not_have_is_not_found(most: int, marked: int) -> None:
    cells = cells_of(MAP, most, marked)
    assert cells.marked is None
    assert not any(cell.marked for cell in cells.cells)


def test_a_cell_of_many_pages_shows_the_worst_and_counts_the_rest() -> None:
    cells = cells_of(MAP, 3, marked=4)
    assert cells.pages_per_cell == 4
    assert [cell.state for cell in cells.cells] == ["used", "quarantined", "free"]
    assert cells.cells[0].text == (
        "pages 0–3: 3 in use, 1 shared prefix, held by request 3f0c5b7e (mine); "
        "request 3f0c5b7e (mine), request 77be01aa, 3 more and the prefix cache"
    )
    assert cells.cells[1].text == "pages 4–7: 1 quarantined, 1 in use, 1 shared prefix, 1 free, held by the prefix cache"
    assert [cell.marked for cell in cells.cells] == [False, True, False]
    assert cells.marked == "page 4: quarantined"


runs = st.lists(st.tuples(st.integers(1, 40), st.sampled_from(PAGE_STATES), st.integers(-1, 1)), max_size=30)


@given(runs, st.integers(1, 64))
def test_cells_and_rows_agree_with_every_page(made: list[tuple[int, str, int]], most: int) -> None:
    told = PageMap(
        pages=sum(pages for pages, _, _ in made),
        held_by=[HeldBy([MINE]), HeldBy([OTHER])],
        runs=[PageRun(pages, state, 0, held_by) for pages, state, held_by in made],  # type: ignore[arg-type]
    )
    states = [run.state for run in told.runs for _ in range(run.pages)]
    cells, pool = cells_of(told, most), told_pages("aaaaaaaa", told)
    assert len(cells.cells) <= most
    pieces = [states[at : at + cells.pages_per_cell] for at in range(0, len(states), cells.pages_per_cell)]
    assert [cell.state for cell in cells.cells] == [min(piece, key=WORST.index) for piece in pieces]
    assert {state: count for state, count in pool.counts.items() if count} == Counter(states)
    assert sum(row.pages for row in pool.rows) == pool.pages == len(states)
    for row in pool.rows:
        for each in row.ranges:
            assert set(states[each.first : each.last + 1]) == {row.state}


def test_ids_are_cut_and_what_is_no_letter_is_not_shown() -> None:
    odd = HoldingRequest("r" * 200, "a\u202eb\n<b>" + "c" * 200)
    told = PageMap(pages=1, held_by=[HeldBy([odd])], runs=[PageRun(1, "used", 1, 0)])
    (row,) = told_pages("aaaaaaaa", told).rows
    assert row.held_by.requests[0].client_id == "a·b·<b>" + "c" * 57
    assert len(row.held_by.requests[0].request_id) == 64
    assert "a·b·<b>" in cells_of(told, 1).cells[0].text


def test_a_pool_in_pieces_makes_no_endless_table() -> None:
    chosen = random.Random(3)
    people = [HeldBy([HoldingRequest(f"{number:032x}")]) for number in range(300)]
    told = PageMap(pages=3000, held_by=people, runs=[PageRun(1, "used", 0, chosen.randrange(300)) for _ in range(3000)])
    pool = told_pages("aaaaaaaa", told)
    assert (len(pool.rows), pool.more_rows) == (100, 200)
    assert max(len(row.ranges) for row in pool.rows) <= 8
    assert all(row.more_ranges == row.pages - len(row.ranges) for row in pool.rows)


@pytest.mark.parametrize("why", [None, ConflictError("it is silent", hint="Wait.")])
def test_counts_stand_in_where_nobody_can_be_asked(why: ConflictError | None) -> None:
    values = dict.fromkeys(Sample.model_fields, 0) | {"guard_alive": True, "tokens_come_out": True}
    values |= {"pages_free": 900_000, "pages_used": 200_000, "pages_cached": 0, "pages_quarantined": 1}
    pool = counted_pages("aaaaaaaa", TimedSample(at=utc_now(), values=Sample(**values)), why)
    assert (pool.asked, pool.pages, pool.rows) == (False, 1_100_001, ())
    assert (pool.problem, pool.hint) == (("it is silent", "Wait.") if why else (None, None))
    cells = counted_cells(pool, 1536)
    assert len(cells.cells) <= 1536 + 3
    assert [cell.state for cell in cells.cells].count("quarantined") == 1


def test_nothing_at_all_is_known() -> None:
    pool = counted_pages("aaaaaaaa", None)
    assert isinstance(pool, PoolPages)
    assert (pool.at, pool.pages, counted_cells(pool, 8).cells) == (None, 0, ())
