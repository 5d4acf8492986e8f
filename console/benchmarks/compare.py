"""Any number of runs side by side: what they came to, how sure a difference is, and what differs between them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.differences import line_up
from roundhouse.serve.benchmark.statistics import QUANTITIES

from ..models import BenchmarkLevel
from .compare_asked import CompareAsked
from .compare_prefill import compare_prefill
from .compare_quantities import repeats_at
from .compare_ratios import ratios_over, runs_in_turns
from .compare_records import Comparison, LevelBeside, RunBeside, verdict_of
from .differences import facts_by_run
from .queries import benchmark_rows

__all__ = ["compare_runs"]

Levels = Mapping[str, Mapping[int, LevelBeside]]


def compare_runs(session: Session, asked: CompareAsked) -> Comparison:
    """Compare, in seven statements; repeats are read at one concurrency only, and of one quantity."""
    rows = benchmark_rows(session, asked.ids) if asked.ids else ()
    ids = [row.id for row in rows]
    missing = tuple(each for each in asked.ids if each not in set(ids))
    if not rows:
        return Comparison(asked, missing=missing)
    base = asked.base if asked.base in ids else ids[0]
    levels = _levels(session, ids)
    at = _chosen(asked.at, base, levels)
    in_turns = runs_in_turns(session, base, ids)
    ratios = ratios_over(base, ids, repeats_at(session, ids, at, asked.by), in_turns)
    better = QUANTITIES[asked.by].more_is_better
    runs = [
        RunBeside(row, number, row.id == base, levels.get(row.id, {}), ratio, verdict_of(ratio, more_is_better=better))
        for number, row in enumerate(rows, 1)
        for ratio in [ratios.get(row.id)]
    ]
    facts = facts_by_run(session, ids)
    lined = line_up([facts[id_] for id_ in ids])
    return Comparison(
        asked=asked,
        runs=runs,
        missing=missing,
        concurrencies=sorted({concurrency for of_run in levels.values() for concurrency in of_run}),
        at=at,
        prefill=compare_prefill(session, base, ids, in_turns),
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
