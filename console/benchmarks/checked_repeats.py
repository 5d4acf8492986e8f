"""What is read of runs to check them against others: their repeats, and requests that failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.judging import CHECKED, PREFILL, CheckedName

from ..models import BenchmarkPoint, BenchmarkPrefill, BenchmarkRun

__all__ = ["CheckedRun", "checked_runs"]

_PLACES: dict[CheckedName, int] = {name: place for place, name in enumerate(CHECKED)}
_Values = Mapping[int, Sequence[float | None]]
_Ended = dict[int, tuple[int, int]]
"""By concurrency, or prompt length: requests that failed, and all that ended either way."""


@dataclass
class CheckedRun:
    """One run, as a check reads it."""

    failed: int = 0
    """Requests, of all points. What follows of requests is read only of runs where some failed, and of their baselines."""
    load: dict[int, list[Sequence[float | None]]] = field(default_factory=lambda: defaultdict(list))
    """By concurrency: the quantities of each repeat, in the order of ``CHECKED``."""
    prefill: dict[int, list[float | None]] = field(default_factory=lambda: defaultdict(list))
    """By prompt length: prompt tokens a second of each repeat; 0 of prompts that nobody answered."""
    load_ended: _Ended = field(default_factory=dict)
    prefill_ended: _Ended = field(default_factory=dict)

    def values(self, name: CheckedName) -> _Values:
        """A quantity's repeats, by concurrency, or by prompt length."""
        if name == PREFILL:
            return self.prefill
        place = _PLACES[name]
        return {concurrency: [repeat[place] for repeat in repeats] for concurrency, repeats in self.load.items()}

    def counted_with(self, other: CheckedRun) -> tuple[int, int]:
        """Failed requests and all that ended, at the concurrencies and prompt lengths that another run has, too."""
        shared = [self.load_ended[place] for place in self.load_ended.keys() & other.load_ended.keys()]
        shared += [self.prefill_ended[place] for place in self.prefill_ended.keys() & other.prefill_ended.keys()]
        return sum(failed for failed, _ in shared), sum(ended for _, ended in shared)


def checked_runs(session: Session, pairs: Sequence[tuple[str, str]]) -> dict[str, CheckedRun]:
    """Read runs that are checked, and their baselines, by id: three statements, and two more where requests failed.

    Args:
        session: where to read.
        pairs: the baseline's id, and the run's.
    """
    ids = sorted({id_ for pair in pairs for id_ in pair})
    found = {id_: CheckedRun() for id_ in ids}
    for id_, failed in session.execute(select(BenchmarkRun.id, BenchmarkRun.failed).where(BenchmarkRun.id.in_(ids))):
        found[id_].failed = failed
    columns = [getattr(BenchmarkPoint, name) for name in CHECKED]
    points = select(BenchmarkPoint.benchmark_id, BenchmarkPoint.concurrency, *columns)
    points = points.where(BenchmarkPoint.benchmark_id.in_(ids))
    for id_, concurrency, *values in session.execute(
        points.order_by(BenchmarkPoint.benchmark_id, BenchmarkPoint.concurrency, BenchmarkPoint.repeat)
    ):
        found[id_].load[concurrency].append(values)
    prompts = select(BenchmarkPrefill.benchmark_id, BenchmarkPrefill.input_tokens, BenchmarkPrefill.tokens_per_s)
    prompts = prompts.where(BenchmarkPrefill.benchmark_id.in_(ids))
    for id_, length, speed in session.execute(
        prompts.order_by(BenchmarkPrefill.benchmark_id, BenchmarkPrefill.input_tokens, BenchmarkPrefill.repeat)
    ):
        found[id_].prefill[length].append(speed)
    if failing := sorted({id_ for pair in pairs if found[pair[1]].failed for id_ in pair}):
        _count_requests(session, failing, found)
    return found


def _count_requests(session: Session, ids: Sequence[str], found: Mapping[str, CheckedRun]) -> None:
    """From what was written down of points, as JSON: no column has it."""
    of_load = (BenchmarkPoint.benchmark_id, BenchmarkPoint.concurrency, *_requests(BenchmarkPoint, "completed"))
    for id_, concurrency, failed, completed in session.execute(select(*of_load).where(BenchmarkPoint.benchmark_id.in_(ids))):
        _add(found[id_].load_ended, concurrency, failed, completed)
    of_prefill = (BenchmarkPrefill.benchmark_id, BenchmarkPrefill.input_tokens, *_requests(BenchmarkPrefill, "requests"))
    for id_, length, failed, answered in session.execute(select(*of_prefill).where(BenchmarkPrefill.benchmark_id.in_(ids))):
        _add(found[id_].prefill_ended, length, failed, answered)


def _requests(table: type[BenchmarkPoint] | type[BenchmarkPrefill], answered: str) -> tuple[Any, Any]:
    return table.record["failed"], table.record[answered]


def _add(counted: _Ended, place: int, failed: Mapping[str, int] | None, answered: int) -> None:
    lost = sum((failed or {}).values())
    before = counted.get(place, (0, 0))
    counted[place] = (before[0] + lost, before[1] + lost + answered)
