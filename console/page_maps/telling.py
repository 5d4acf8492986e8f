"""From what a front says of its pages, or from a sample's counts, to what is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from roundhouse.errors import RoundhouseError
from roundhouse.serve.page_map import HeldBy, PageMap, PageRun, PageState

from ..database.base import utc_now
from ..deployments.records import TimedSample
from .records import Holders, Holding, PageRange, PagesRow, PoolPages

__all__ = ["WORST", "counted_pages", "holders_of", "runs_of", "told_pages"]

WORST: tuple[PageState, ...] = ("quarantined", "used", "shared", "free")
"""What counts more where something is said of many pages at once."""
_MOST_ROWS, _MOST_RANGES = 100, 8
_LONGEST_ID = 64


@dataclass
class _Hands:
    """Pages in the same state and hands, as they are found."""

    pages: int = 0
    found: int = 0
    """Runs of them."""
    ranges: list[PageRange] = field(default_factory=list)


def runs_of(told: PageMap) -> Iterator[tuple[int, PageRun]]:
    """Every run with its first page."""
    return zip(accumulate((run.pages for run in told.runs), initial=0), told.runs, strict=False)


def holders_of(told: PageMap) -> list[Holders]:
    """Everybody whom a map names, in its order, and nobody as the last: −1 is where nobody is found."""
    return [*map(_holders, told.held_by), Holders()]


def told_pages(deployment_id: str, told: PageMap) -> PoolPages:
    """What a front said just now."""
    hands: dict[tuple[PageState, int], _Hands] = {}
    for first, run in runs_of(told):
        of_one = hands.setdefault((run.state, run.held_by), _Hands())
        of_one.pages += run.pages
        of_one.found += 1
        if len(of_one.ranges) < _MOST_RANGES:
            of_one.ranges.append(PageRange(first=first, last=first + run.pages - 1, tag=run.tag))
    counts = Counter(dict.fromkeys(WORST, 0))
    for (state, _), of_one in hands.items():
        counts[state] += of_one.pages
    order = sorted(hands, key=lambda key: (WORST.index(key[0]), -hands[key].pages, hands[key].ranges[0].first))
    holders = holders_of(told)
    return PoolPages(
        deployment_id=deployment_id,
        at=utc_now(),
        asked=True,
        pages=told.pages,
        counts=dict(counts),
        rows=tuple(_row(key[0], holders[key[1]], hands[key]) for key in order[:_MOST_ROWS]),
        more_rows=max(0, len(order) - _MOST_ROWS),
    )


def counted_pages(deployment_id: str, sample: TimedSample | None, why: RoundhouseError | None = None) -> PoolPages:
    """What the latest sample counted; nothing where there is none.

    Args:
        deployment_id: whose.
        sample: its latest.
        why: what kept its front from being asked.
    """
    counts: dict[PageState, int] = dict.fromkeys(WORST, 0)
    if sample is not None:
        now = sample.values
        counts |= {"quarantined": now.pages_quarantined, "used": now.pages_used, "shared": now.pages_cached}
        counts["free"] = now.pages_free
    return PoolPages(
        deployment_id=deployment_id,
        at=sample.at if sample else None,
        asked=False,
        problem=why.message if why else None,
        hint=why.hint if why else None,
        pages=sum(counts.values()),
        counts=counts,
    )


def _row(state: PageState, held_by: Holders, hands: _Hands) -> PagesRow:
    more = hands.found - len(hands.ranges)
    return PagesRow(state=state, held_by=held_by, pages=hands.pages, ranges=tuple(hands.ranges), more_ranges=more)


def _holders(held_by: HeldBy) -> Holders:
    requests = [Holding(request_id=_shown(each.request_id), client_id=_shown(each.client_id)) for each in held_by.requests]
    return Holders(requests=tuple(requests), more=held_by.more, prefix_cache=held_by.prefix_cache)


def _shown(identity: str) -> str:
    """An id as it can be shown, for clients choose theirs: cut, and without what would change how the rest is read."""
    return "".join(letter if letter.isprintable() else "·" for letter in identity[:_LONGEST_ID])
