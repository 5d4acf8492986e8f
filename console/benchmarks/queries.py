"""Benchmark runs as they are read: lists, one of them with everything, and its live samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, literal, select, union
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.records import BenchmarkHeader

from ..database.base import utc_now
from ..errors import NotFoundError
from ..models import BenchmarkLevel, BenchmarkPrefill, BenchmarkRun, BenchmarkSample, BenchmarkTag, EngineRecord, Job
from ..paging import Paged, PageOf, paged_rows
from .files import files_of
from .filters import fitting, in_order
from .records import (
    BenchmarkChoices,
    BenchmarkDetail,
    BenchmarkFilter,
    BenchmarkJob,
    BenchmarkRow,
    BenchmarkSort,
    LevelRow,
    NumberedSample,
    SamplesAnswer,
    WorkloadChoice,
)
from .silence import is_silent, shown_state
from .stored import stored
from .whole_runs import points_by_run, prefill_by_run

__all__ = [
    "benchmark_choices",
    "benchmark_detail",
    "benchmark_row",
    "benchmark_rows",
    "levels_by_run",
    "list_benchmarks",
    "measured_points",
    "newest_samples",
    "require_benchmark",
    "samples_since",
    "tags_by_run",
]

_NOT_COLUMNS = ("state", "silent", "tags")
_FACTS = [getattr(BenchmarkRun, name) for name in BenchmarkRow.model_fields if name not in _NOT_COLUMNS]
_LEVEL = [getattr(BenchmarkLevel, name) for name in LevelRow.model_fields]
_SAMPLE = [getattr(BenchmarkSample, name) for name in NumberedSample.model_fields]
_CHOICES = {
    "models": BenchmarkRun.model,
    "weights": BenchmarkRun.weights,
    "kv_caches": BenchmarkRun.kv_cache,
    "hardware": BenchmarkRun.hardware,
    "drivers": BenchmarkRun.driver,
}


def list_benchmarks(
    session: Session, wanted: BenchmarkFilter, page: PageOf, sort: BenchmarkSort = "-began"
) -> Paged[BenchmarkRow]:
    """A page of the runs that fit, in three statements."""
    now = utc_now()
    rows, total = paged_rows(session, _rows(now).where(*fitting(wanted, now)).order_by(*in_order(sort)), page)
    tags = tags_by_run(session, [row.id for row in rows])
    items = tuple(BenchmarkRow(**row._mapping, tags=tags[row.id]) for row in rows)
    return Paged(items=items, total=total, page=page.number, size=page.size)


def benchmark_rows(session: Session, ids: Sequence[str]) -> tuple[BenchmarkRow, ...]:
    """Runs by their ids, in the order of these and each once; those that are not there are left out. Two statements."""
    wanted = _rows(utc_now()).where(BenchmarkRun.id.in_(ids), BenchmarkRun.deleted_at.is_(None))
    rows = {row.id: row for row in session.execute(wanted)}
    tags = tags_by_run(session, list(rows))
    there = [rows[id_] for id_ in dict.fromkeys(ids) if id_ in rows]
    return tuple(BenchmarkRow(**row._mapping, tags=tags[row.id]) for row in there)


def benchmark_row(session: Session, benchmark_id: str) -> BenchmarkRow:
    """What lists say of one run: two statements, which read none of its points, nor its header.

    Raises:
        NotFoundError: there is none with this id.
    """
    found = benchmark_rows(session, [benchmark_id])
    if not found:
        raise _missing(benchmark_id)
    return found[0]


def levels_by_run(session: Session, ids: Sequence[str]) -> defaultdict[str, tuple[LevelRow, ...]]:
    """The levels of some runs, by concurrency: one statement."""
    found: defaultdict[str, tuple[LevelRow, ...]] = defaultdict(tuple)
    wanted = select(BenchmarkLevel.benchmark_id, *_LEVEL).where(BenchmarkLevel.benchmark_id.in_(ids))
    for row in session.execute(wanted.order_by(BenchmarkLevel.benchmark_id, BenchmarkLevel.concurrency)):
        fields = {name: getattr(row, name) for name in LevelRow.model_fields}
        found[row.benchmark_id] += (LevelRow(**fields),)
    return found


def tags_by_run(session: Session, ids: Sequence[str]) -> defaultdict[str, tuple[str, ...]]:
    """The tags of some runs, in order: one statement."""
    found: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    wanted = select(BenchmarkTag.benchmark_id, BenchmarkTag.tag).where(BenchmarkTag.benchmark_id.in_(ids))
    for id_, tag in session.execute(wanted.order_by(BenchmarkTag.tag)):
        found[id_] += (tag,)
    return found


def benchmark_detail(session: Session, benchmark_id: str) -> BenchmarkDetail:
    """One run with everything, in six statements; its live samples are asked for apart.

    Raises:
        NotFoundError: there is none with this id.
        ConflictError: this version cannot read it.
    """
    known = select(EngineRecord.id).where(EngineRecord.id == BenchmarkRun.engine_id).exists().label("engine_known")
    of_job = [getattr(Job, name).label(f"job_{name}") for name in BenchmarkJob.model_fields if name != "id"]
    more = (BenchmarkRun.home, BenchmarkRun.recorded_at, BenchmarkRun.samples, BenchmarkRun.header)
    wanted = _rows(utc_now()).add_columns(*more, known, *of_job).outerjoin(Job, Job.id == BenchmarkRun.job_id)
    row = session.execute(wanted.where(BenchmarkRun.id == benchmark_id, BenchmarkRun.deleted_at.is_(None))).one_or_none()
    if row is None:
        raise _missing(benchmark_id)
    fields = {name: value for name, value in row._mapping.items() if name in BenchmarkDetail.model_fields}
    return BenchmarkDetail(
        **fields | {"header": stored(BenchmarkHeader, row.header, f"benchmark run {benchmark_id}")},
        tags=tags_by_run(session, [benchmark_id])[benchmark_id],
        levels=levels_by_run(session, [benchmark_id])[benchmark_id],
        all_points=tuple(points_by_run(session, [benchmark_id]).get(benchmark_id, ())),
        all_prefill=tuple(prefill_by_run(session, [benchmark_id]).get(benchmark_id, ())),
        files=files_of(session, benchmark_id),
        job=_job(row),
    )


def require_benchmark(session: Session, benchmark_id: str) -> None:
    """See that a run is there: one statement.

    Raises:
        NotFoundError: it is not.
    """
    there = select(BenchmarkRun.id).where(BenchmarkRun.id == benchmark_id, BenchmarkRun.deleted_at.is_(None))
    if session.scalar(there) is None:
        raise _missing(benchmark_id)


def measured_points(session: Session, run: BenchmarkRow) -> int:
    """How many points a run has by now, of load and of prefill: one statement, which reads none of them."""
    prefill = select(func.count()).select_from(BenchmarkPrefill).where(BenchmarkPrefill.benchmark_id == run.id)
    return run.points + (session.scalar(prefill) or 0)


def samples_since(session: Session, benchmark_id: str, number: int = -1, *, most: int = 2_000) -> SamplesAnswer:
    """Live samples of a run, the oldest first, in two statements.

    Args:
        session: where to read.
        benchmark_id: of the run.
        number: only those after this one.
        most: so many at once.

    Raises:
        NotFoundError: there is no such run.
    """
    state = select(shown_state(BenchmarkRun, utc_now())).where(BenchmarkRun.id == benchmark_id)
    # First: who sees that it has ended, sees all that came before.
    shown = session.scalar(state.where(BenchmarkRun.deleted_at.is_(None)))
    if shown is None:
        raise _missing(benchmark_id)
    after = (BenchmarkSample.benchmark_id == benchmark_id, BenchmarkSample.number > number)
    found = session.execute(select(*_SAMPLE).where(*after).order_by(BenchmarkSample.number).limit(most))
    return SamplesAnswer(state=shown, samples=tuple(NumberedSample(**row._mapping) for row in found))


def newest_samples(session: Session, benchmark_id: str, most: int) -> tuple[NumberedSample, ...]:
    """The last live samples of a run, the oldest first: one statement."""
    wanted = select(*_SAMPLE).where(BenchmarkSample.benchmark_id == benchmark_id)
    found = session.execute(wanted.order_by(BenchmarkSample.number.desc()).limit(most)).all()
    return tuple(NumberedSample(**row._mapping) for row in reversed(found))


def benchmark_choices(session: Session) -> BenchmarkChoices:
    """What filters can be set to: one statement."""
    there = BenchmarkRun.deleted_at.is_(None)
    nothing = literal("")
    parts = [
        select(literal(name).label("what"), column, nothing).where(there, column.is_not(None))
        for name, column in _CHOICES.items()
    ]
    parts.append(select(literal("tags"), BenchmarkTag.tag, nothing))
    first = func.min(BenchmarkRun.workload)
    parts.append(
        select(literal("workloads"), BenchmarkRun.workload_key, first).where(there).group_by(BenchmarkRun.workload_key)
    )
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for what, value, words in session.execute(union(*parts)):
        found[what].append(WorkloadChoice(key=value, words=words) if what == "workloads" else value)
    found["workloads"].sort(key=lambda each: each.words)
    for name in found.keys() - {"workloads"}:
        found[name].sort()
    return BenchmarkChoices(**{name: tuple(values) for name, values in found.items()})


def _rows(now: datetime) -> Any:
    state, silent = shown_state(BenchmarkRun, now).label("state"), is_silent(BenchmarkRun, now).label("silent")
    return select(*_FACTS, state, silent)


def _job(row: Row[Any]) -> BenchmarkJob | None:
    if row.job_id is None:
        return None
    rest = {name: getattr(row, f"job_{name}") for name in BenchmarkJob.model_fields if name != "id"}
    return BenchmarkJob(id=row.job_id, **rest)


def _missing(benchmark_id: str) -> NotFoundError:
    return NotFoundError(f"there is no benchmark run {benchmark_id}")
