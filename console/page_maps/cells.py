"""A pool as cells, each with what to say of it: one a page, or one for several where there are too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from roundhouse.serve.page_map import PageMap, PageRun, PageState

from .records import PageRange, PoolPages
from .telling import WORST, holders_of, runs_of

__all__ = ["Cell", "Cells", "cells_of", "counted_cells"]

_NAMES: dict[PageState, str] = {"free": "free", "used": "in use", "shared": "shared prefix", "quarantined": "quarantined"}
_MOST_NAMED = 3


@dataclass(frozen=True)
class Cell:
    """A cell of the picture."""

    state: PageState
    text: str
    marked: bool = False
    """Whether the page that is asked about lies in it."""


@dataclass(frozen=True)
class Cells:
    """All of a pool's, in its order."""

    cells: tuple[Cell, ...]
    pages_per_cell: int
    marked: str | None = None
    """What to say of the page that is asked about."""


def cells_of(told: PageMap, most: int, marked: int | None = None) -> Cells:
    """Cells of a pool whose holders are known. Pages of a run say the same.

    Args:
        told: the pool.
        most: cells.
        marked: a page that is asked about; one that is not there is not found.
    """
    holders = [each.text for each in holders_of(told)]
    per_cell = max(1, -(-told.pages // most))
    found: list[Cell] = []
    said = None
    for first, parts in _cut(told, per_cell):
        end = min(first + per_cell, told.pages)
        is_marked = marked is not None and first <= marked < end
        if len(parts) == 1:
            start, run = parts[0]
            cell = Cell(run.state, _of_run(start, run, holders[run.held_by]), is_marked)
        else:
            cell = _of_many(first, end, parts, holders, is_marked)
        found.append(cell)
        if marked is not None and is_marked:
            start, run = next((start, run) for start, run in reversed(parts) if start <= marked)
            one = PageRun(1, run.state, run.tag + marked - start if run.tag else 0, run.held_by)
            said = _of_run(marked, one, holders[run.held_by])
    return Cells(tuple(found), per_cell, said)


def counted_cells(counted: PoolPages, most: int) -> Cells:
    """Cells of a pool of which only counts are known, sorted by state: whatever there is any of, there is a cell of."""
    per_cell = max(1, -(-counted.pages // most))
    order: tuple[PageState, ...] = ("used", "shared", "quarantined", "free")
    cells = [Cell(state, _NAMES[state]) for state in order for _ in range(-(-counted.counts[state] // per_cell))]
    return Cells(tuple(cells), per_cell)


def _cut(told: PageMap, per_cell: int) -> Iterator[tuple[int, list[tuple[int, PageRun]]]]:
    """Each cell's first page, and the runs that lie in it, or reach into it, each with its own first page."""
    parts: list[tuple[int, PageRun]] = []
    cell = 0
    for first, run in runs_of(told):
        parts.append((first, run))
        while cell + per_cell <= first + run.pages:
            yield cell, parts
            cell += per_cell
            parts = [(first, run)] if cell < first + run.pages else []
    if parts:
        yield cell, parts


def _of_run(first: int, run: PageRun, holders: str) -> str:
    where = PageRange(first=first, last=first + run.pages - 1, tag=run.tag)
    several = "s" if run.pages > 1 else ""
    tags = f", tag{several} {where.tags}" if where.tags else ""
    return f"page{several} {where.text}: {_NAMES[run.state]}{tags}{_held(run.state, holders)}"


def _of_many(first: int, end: int, parts: list[tuple[int, PageRun]], holders: list[str], marked: bool) -> Cell:
    """A cell for pages of different states or hands: the worst state wins."""
    counts: Counter[PageState] = Counter()
    for start, run in parts:
        counts[run.state] += min(end, start + run.pages) - max(first, start)
    state = next(each for each in WORST if counts[each])
    named = list(dict.fromkeys(text for _, run in parts if (text := holders[run.held_by])))
    if len(named) > _MOST_NAMED:
        named = [*named[:_MOST_NAMED], "others"]
    told = ", ".join(f"{counts[each]:,} {_NAMES[each]}" for each in WORST if counts[each])
    return Cell(state, f"pages {first:,}–{end - 1:,}: {told}{_held('free', '; '.join(named))}", marked)


def _held(state: PageState, holders: str) -> str:
    if holders:
        return f", held by {holders}"
    return ", held by nobody that is known" if state in ("used", "shared") else ""
