"""Any number of runs side by side: what they came to, how sure a difference is, and what differs between them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.statistics import Ratio, ratio_interval, ratio_intervals

from ..models import BenchmarkLevel, BenchmarkPoint, BenchmarkRun
from .compare_asked import CompareAsked
from .compare_records import Comparison, LevelBeside, RunBeside
from .differences import facts_by_run, line_up
from .queries import benchmark_rows

__all__ = ["compare_runs"]

_MOST_PAIRED = 24
"""Runs of the base's session that are paired with it. An interval of pairs takes a hundredth of a second, and sessions are
a few runs that took turns."""

Levels = Mapping[str, Mapping[int, LevelBeside]]


def compare_runs(session: Session, asked: CompareAsked) -> Comparison:
    """Compare, in six statements; repeats are read at one concurrency only."""
    rows = benchmark_rows(session, asked.ids) if asked.ids else ()
    ids = [row.id for row in rows]
    missing = tuple(each for each in asked.ids if each not in set(ids))
    if not rows:
        return Comparison(asked, missing=missing)
    base = asked.base if asked.base in ids else ids[0]
    levels = _levels(session, ids)
    at = _chosen(asked.at, base, levels)
    ratios = _ratios(session, base, ids, at)
    runs = [
        RunBeside(row, number, row.id == base, levels.get(row.id, {}), ratios.get(row.id)) for number, row in enumerate(rows, 1)
    ]
    facts = facts_by_run(session, ids)
    lined = line_up([facts[id_] for id_ in ids])
    return Comparison(
        asked=asked,
        runs=runs,
        missing=missing,
        concurrencies=sorted({concurrency for of_run in levels.values() for concurrency in of_run}),
        at=at,
        warnings=tuple(_warnings(runs)),
        differences=tuple(each for each in lined if asked.show_all or not each.is_equal),
        equal=sum(each.is_equal for each in lined),
    )


def _levels(session: Session, ids: Sequence[str]) -> Levels:
    found: dict[str, dict[int, LevelBeside]] = defaultdict(dict)
    columns = [getattr(BenchmarkLevel, name) for name in LevelBeside._fields]
    wanted = select(BenchmarkLevel.benchmark_id, *columns).where(BenchmarkLevel.benchmark_id.in_(ids))
    for id_, *values in session.execute(wanted.order_by(BenchmarkLevel.benchmark_id, BenchmarkLevel.concurrency)):
        level = LevelBeside(*values)
        found[id_][level.concurrency] = level
    return found


def _chosen(asked: int | None, base: str, levels: Levels) -> int | None:
    """Where ratios are taken: as asked, else where the most runs were measured, the base among them; of these the highest."""
    counted = Counter(concurrency for of_run in levels.values() for concurrency in of_run)
    if asked is not None and asked in counted:
        return asked
    return max(counted, key=lambda each: (each in levels.get(base, {}), counted[each], each), default=None)


def _ratios(session: Session, base: str, ids: Sequence[str], at: int | None) -> dict[str, Ratio]:
    """Of each run over the base: of pairs where both took turns, else of repeats as they are."""
    repeats: dict[str, dict[int, float]] = defaultdict(dict)
    columns = (BenchmarkPoint.benchmark_id, BenchmarkPoint.repeat, BenchmarkPoint.output_tokens_per_s)
    wanted = select(*columns).where(BenchmarkPoint.benchmark_id.in_(ids), BenchmarkPoint.concurrency == at)
    for id_, repeat, speed in session.execute(wanted.order_by(*columns[:2])):
        repeats[id_][repeat] = speed
    of_base = repeats[base]
    found: dict[str, Ratio] = {}
    for id_ in _in_turns(session, base, ids):
        both = sorted(of_base.keys() & repeats[id_].keys())
        found[id_] = ratio_interval([of_base[n] for n in both], [repeats[id_][n] for n in both], paired=True)
    alone = [id_ for id_ in ids if id_ != base and id_ not in found]
    unpaired = ratio_intervals(list(of_base.values()), [list(repeats[id_].values()) for id_ in alone])
    return found | dict(zip(alone, unpaired, strict=True))


def _in_turns(session: Session, base: str, ids: Sequence[str]) -> list[str]:
    """Runs that took turns with the base."""
    turns = BenchmarkRun.header["session"].as_string()
    of_base = select(turns).where(BenchmarkRun.id == base).scalar_subquery()
    found = set(session.scalars(select(BenchmarkRun.id).where(BenchmarkRun.id.in_(ids), turns == of_base)))
    return [id_ for id_ in ids if id_ in found and id_ != base][:_MOST_PAIRED]


def _warnings(runs: Sequence[RunBeside]) -> Iterator[str]:
    """Why numbers may not be comparable."""
    rows = [run.row for run in runs]
    workloads = {row.workload_key: row.workload for row in rows}
    if len(workloads) > 1:
        yield f"They were not asked the same: {_listed(workloads.values())}."
    if len({row.hardware for row in rows}) > 1:
        yield f"They ran on different hardware: {_listed(row.hardware for row in rows)}."
    if len({row.driver for row in rows}) > 1:
        yield f"Their load came from different programs: {_listed(row.driver for row in rows)}."
    if noisy := [run.number for run in runs if run.row.noisy]:
        yield f"Others kept the machine busy during {_numbers(noisy)}."
    if unfinished := [run.number for run in runs if run.row.state != "finished"]:
        yield f"Not finished, so some of it may be missing: {_numbers(unfinished)}."


def _listed(texts: Iterable[str]) -> str:
    different = list(dict.fromkeys(texts))
    more = f" and {len(different) - 4} more" if len(different) > 4 else ""  # enough to see why
    return "; ".join(different[:4]) + more


def _numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    more = f" and {len(numbers) - 8} more" if len(numbers) > 8 else ""  # enough to find them
    return f"{'run' if len(numbers) == 1 else 'runs'} {shown}{more}"
