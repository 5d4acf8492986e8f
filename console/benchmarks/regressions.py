"""Whether the newest runs of many series are worse than their baselines, by the rule of ``roundhouse bench check``.

A series has regressed where a quantity that is checked is worse by more than the tolerance and the repeats support it
(:mod:`roundhouse.serve.benchmark.judging`): of load over the concurrencies that both runs share, of prefill over the prompt
lengths. It has, too, where more requests fail, and where nothing comes out that did. The test is what takes time, so it is made
only where the tolerance is exceeded, which decides most series alone; and what came of it is remembered, because points of
finished runs never change. The same repeats taken by turns are left to ``bench check``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.failing import judge_failures
from roundhouse.serve.benchmark.judging import (
    CHECKED,
    FAMILIES,
    CheckedName,
    CheckedQuantity,
    fallen_silent,
    judge,
    more_is_better,
    words_of,
    worse_by,
)

from .checked_repeats import CheckedRun, checked_runs

__all__ = ["ALPHA", "FAILURES", "TOLERANCE", "Regression", "WorseName", "check_regressions"]

ALPHA, TOLERANCE = 0.05, 0.02
"""As ``roundhouse bench check`` has them when nobody says otherwise."""
_REMEMBERED = 4_096
WorseName = CheckedName | Literal["failures"]
FAILURES: WorseName = "failures"

_Pairs = tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]
"""A concurrency or a prompt length each: repeats of the baseline, and of the run, all above zero."""


@dataclass(frozen=True)
class Regression:
    """What came of a check."""

    state: Literal["regressed", "as before", "undecided"]
    """``undecided``: worse, but so few repeats could not show it."""
    ratio: float | None
    """Output tokens a second, newest over baseline: the geometric mean over shared concurrencies; None where none is."""
    words: str
    """Why, in sentences."""
    worse: frozenset[WorseName] = frozenset()
    """What has regressed."""


def check_regressions(session: Session, pairs: Sequence[tuple[str, str]]) -> dict[str, Regression]:
    """Check runs against their baselines, in three statements, and two more where requests failed.

    Args:
        session: where to read.
        pairs: the baseline's id, and the run's.

    Returns:
        By the run's id.
    """
    found = checked_runs(session, pairs)
    return {run: _check(found[baseline], found[run]) for baseline, run in pairs}


def _check(baseline: CheckedRun, run: CheckedRun) -> Regression:
    pairs_of = {name: _pairs(baseline, run, name) for family in FAMILIES for name in family}
    ratios = {name: _ratio(pairs) for name, pairs in pairs_of.items() if pairs}
    judged = {each.quantity: each for family in FAMILIES for each in _judged_where_worse(family, pairs_of, ratios)}
    regressed: list[CheckedName] = [name for name, each in judged.items() if each.verdict == "regressed"]
    reasons = dict(_absolute(baseline, run))
    words = [*reasons.values(), *([_told(regressed, ratios)] if regressed else [])]
    ratio = None if CHECKED[0] in reasons else ratios.get(CHECKED[0])
    if words:
        what: set[WorseName] = {*reasons, *regressed}
        return Regression("regressed", ratio, " ".join(words), frozenset(what))
    if not pairs_of[CHECKED[0]]:
        return Regression("undecided", None, "No concurrency was measured in both.")
    worse = [name for name, each in judged.items() if worse_by(name, each.ratio) > TOLERANCE]
    if not worse:
        return Regression("as before", ratio, f"Nothing is worse by more than {TOLERANCE:.0%}.")
    if any(judged[name].verdict == "undecided" for name in worse):
        return Regression("undecided", ratio, f"{_told(worse, ratios)} Too few repeats to tell that from noise.")
    return Regression("as before", ratio, f"{_told(worse, ratios)} The repeats do not tell that from noise.")


def _absolute(baseline: CheckedRun, run: CheckedRun) -> Iterator[tuple[WorseName, str]]:
    """What is worse without a test: nothing comes out any more, or requests fail."""
    for name, words in fallen_silent(baseline.values, run.values).items():
        yield name, f"{words[:1].upper()}{words[1:]}."
    if run.failed:
        failures = judge_failures(*run.counted_with(baseline), *baseline.counted_with(run), alpha=ALPHA)
        if failures.risen:
            yield FAILURES, f"{failures.words}."


def _pairs(baseline: CheckedRun, run: CheckedRun, name: CheckedName) -> _Pairs:
    of_base, of_run = baseline.values(name), run.values(name)
    shared = sorted(of_base.keys() & of_run.keys())
    sides = ((tuple(filter(None, of_base[place])), tuple(filter(None, of_run[place]))) for place in shared)
    return tuple((before, now) for before, now in sides if before and now)


def _judged_where_worse(
    family: tuple[CheckedName, ...], pairs_of: dict[CheckedName, _Pairs], ratios: dict[CheckedName, float]
) -> tuple[CheckedQuantity, ...]:
    """The whole family, because it is corrected for all of its questions; nothing where none is worse."""
    if not any(worse_by(name, ratios[name]) > TOLERANCE for name in family if name in ratios):
        return ()
    return _judged(tuple((name, pairs_of[name]) for name in family))


@lru_cache(maxsize=_REMEMBERED)
def _judged(pairs: tuple[tuple[CheckedName, _Pairs], ...]) -> tuple[CheckedQuantity, ...]:
    return tuple(judge(dict(pairs), alpha=ALPHA, tolerance=TOLERANCE))


def _ratio(pairs: _Pairs) -> float:
    """The geometric mean over places of the ratio of geometric means over repeats."""
    logs = [_mean_log(now) - _mean_log(before) for before, now in pairs]
    return math.exp(sum(logs) / len(logs))


def _mean_log(values: Sequence[float]) -> float:
    return sum(map(math.log, values)) / len(values)


def _told(names: Sequence[CheckedName], ratios: dict[CheckedName, float]) -> str:
    parts = [f"{words_of(name)} {'down' if more_is_better(name) else 'up'} by {abs(ratios[name] - 1):.1%}" for name in names]
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."
