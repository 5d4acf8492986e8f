"""Whether the newest runs of many series are worse than their baselines, by the rule of ``roundhouse bench check``.

A series has regressed where a quantity that is checked is worse by more than the tolerance and the repeats support it: a
permutation test over the concurrencies that both runs share, its p-value raised for the number of quantities (Holm). The test
is what takes time, so it is made only where the tolerance is exceeded, which decides most series alone; and what came of it is
remembered, because points of finished runs never change. Failed requests and the same repeats taken by turns are left to
``bench check``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.checking import CHECKED
from roundhouse.serve.benchmark.statistics import QUANTITIES, holm, is_worse

from ..models import BenchmarkPoint

__all__ = ["ALPHA", "TOLERANCE", "Regression", "check_regressions"]

ALPHA, TOLERANCE = 0.05, 0.02
"""As ``roundhouse bench check`` has them when nobody says otherwise."""
_REMEMBERED = 4_096

Strata = tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]
"""A concurrency each: repeats of the baseline, and of the run."""
Repeats = Mapping[int, Sequence[tuple[float | None, ...]]]
"""By concurrency: the quantities of each repeat, in the order of ``CHECKED``."""


@dataclass(frozen=True)
class Regression:
    """What came of a check."""

    state: Literal["regressed", "as before", "undecided"]
    """``undecided``: worse, but so few repeats could not show it."""
    ratio: float | None
    """Output tokens a second, newest over baseline: the geometric mean over shared concurrencies; None where none is."""
    words: str
    """Why, in a sentence."""


def check_regressions(session: Session, pairs: Sequence[tuple[str, str]]) -> dict[str, Regression]:
    """Check runs against their baselines: one statement.

    Args:
        session: where to read.
        pairs: the baseline's id, and the run's.

    Returns:
        By the run's id.
    """
    wanted = sorted({id_ for pair in pairs for id_ in pair})
    columns = [getattr(BenchmarkPoint, name) for name in CHECKED]
    found: dict[str, dict[int, list[tuple[float | None, ...]]]] = defaultdict(lambda: defaultdict(list))
    rows = select(BenchmarkPoint.benchmark_id, BenchmarkPoint.concurrency, *columns)
    rows = rows.where(BenchmarkPoint.benchmark_id.in_(wanted))
    for id_, concurrency, *values in session.execute(
        rows.order_by(BenchmarkPoint.benchmark_id, BenchmarkPoint.concurrency, BenchmarkPoint.repeat)
    ):
        found[id_][concurrency].append(tuple(values))
    return {run: _check(found[baseline], found[run]) for baseline, run in pairs}


def _check(baseline: Repeats, run: Repeats) -> Regression:
    shared = sorted(baseline.keys() & run.keys())
    strata = [_strata(baseline, run, shared, place) for place in range(len(CHECKED))]
    ratios = [_ratio(each) for each in strata]
    if silent := [n for n in shared if _spoke(baseline[n]) and not _spoke(run[n])]:
        told = ", ".join(map(str, silent))
        return Regression("regressed", None, f"No tokens came out at {told} at once, where the baseline has some.")
    if ratios[0] is None:
        return Regression("undecided", None, "No concurrency was measured in both.")
    worse = [
        ratio is not None and (1 - ratio if QUANTITIES[name].more_is_better else ratio - 1) > TOLERANCE
        for name, ratio in zip(CHECKED, ratios, strict=True)
    ]
    if not any(worse):
        return Regression("as before", ratios[0], f"Nothing is worse by more than {TOLERANCE:.0%}.")
    tested = [place for place, ratio in enumerate(ratios) if ratio is not None]
    tests = [_test(strata[place], QUANTITIES[CHECKED[place]].more_is_better) for place in tested]
    raised = holm([p for p, _ in tests])
    sure = [place for place, p in zip(tested, raised, strict=True) if worse[place] and p <= ALPHA]
    if sure:
        return Regression("regressed", ratios[0], _told(sure, ratios))
    short = any(worse[place] and least * len(tests) > ALPHA for place, (_, least) in zip(tested, tests, strict=True))
    words = _told([place for place in tested if worse[place]], ratios)
    if short:
        return Regression("undecided", ratios[0], f"{words} Too few repeats to tell that from noise.")
    return Regression("as before", ratios[0], f"{words} The repeats do not tell that from noise.")


def _spoke(repeats: Sequence[tuple[float | None, ...]]) -> bool:
    """Whether any tokens came out."""
    return any(each[0] for each in repeats)


def _strata(baseline: Repeats, run: Repeats, shared: Sequence[int], place: int) -> Strata:
    """Of one quantity; a repeat in which nothing was measured has no ratio."""
    sides = (
        tuple(tuple(value for each in side[n] if (value := each[place]) is not None and value > 0) for side in (baseline, run))
        for n in shared
    )
    return tuple((base, other) for base, other in sides if base and other)


def _ratio(strata: Strata) -> float | None:
    """The geometric mean over concurrencies of the ratio of geometric means over repeats."""
    if not strata:
        return None
    logs = [_mean_log(other) - _mean_log(base) for base, other in strata]
    return math.exp(sum(logs) / len(logs))


def _mean_log(values: Sequence[float]) -> float:
    return sum(map(math.log, values)) / len(values)


@lru_cache(maxsize=_REMEMBERED)
def _test(strata: Strata, more_is_better: bool) -> tuple[float, float]:
    tested = is_worse(strata, more_is_better=more_is_better)
    return tested.p, tested.least_p


def _told(places: Sequence[int], ratios: Sequence[float | None]) -> str:
    parts = []
    for place in places:
        quantity, ratio = QUANTITIES[CHECKED[place]], ratios[place] or 1.0
        parts.append(f"{quantity.words} {'down' if quantity.more_is_better else 'up'} by {abs(ratio - 1):.1%}")
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."
