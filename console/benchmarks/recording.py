"""Writing down benchmark runs and what came of them: the same for folders of workers and for files that were sent here."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from roundhouse.build.home import Home
from roundhouse.errors import ServeError
from roundhouse.serve.benchmark.points import Point
from roundhouse.serve.benchmark.statistics import summary_of

from ..database.base import utc_now
from ..database.upserts import insert_missing
from ..models import BenchmarkLevel, BenchmarkPoint, BenchmarkPrefill, BenchmarkRun, BenchmarkSample, BenchmarkTag
from ..worker.wire import plain_text, plain_value
from .content import BenchmarkContent, read_content
from .files import keep_files
from .levels import level_rows
from .series import hardware_of, searched_text, series_of, serving_of
from .silence import may_record

__all__ = ["record_benchmark", "record_folder"]

_OF_RECIPE = ("target", "role", "weights", "kv_cache", "guard")


def record_folder(session: Session, folder: Path, host: str, home: Home, job_id: int | None = None) -> None:
    """Make the database agree with a run's folder, adding what is new.

    Args:
        session: of a transaction that writes.
        folder: of the run.
        host: the name of this host.
        home: where it lies.
        job_id: the job that measures it; None leaves what is known of that.

    Raises:
        ServeError: its header cannot be read, or is another run's.
    """
    known = session.scalar(select(BenchmarkRun.samples).where(BenchmarkRun.id == folder.name))
    content = read_content(folder, known_samples=known or 0)
    if content.header.id != folder.name:
        raise ServeError(f"{folder} is a copy of run {content.header.id}", hint="A run's folder has its id as its name.")
    record_benchmark(session, content, host, str(home.path), job_id=job_id)


def record_benchmark(session: Session, content: BenchmarkContent, host: str, home: str, *, job_id: int | None = None) -> None:
    """Write down a run, or what is new of it. Points and samples that are known stay as they are.

    One that was deleted here stays deleted, and one that another home has, too, stays that home's.

    Args:
        session: of a transaction that writes.
        content: the run.
        host: of its home; empty where it has no folder.
        home: where its folder is; empty where it has none.
        job_id: the job that measures it; None leaves what is known of that.
    """
    row = _row(session, content, host, home)
    if not may_record(session, row, host, home):
        return
    _add_points(session, content)
    samples = [
        {"benchmark_id": row.id, "number": number, **each.model_dump()}
        for number, each in enumerate(content.samples, content.first_sample)
    ]
    insert_missing(session, BenchmarkSample, samples)
    levels = level_rows(_once_each(content.points))
    session.execute(delete(BenchmarkLevel).where(BenchmarkLevel.benchmark_id == row.id))
    insert_missing(session, BenchmarkLevel, [{"benchmark_id": row.id, **level.model_dump()} for level in levels])
    keep_files(session, row.id, content.files)
    summary = asdict(summary_of(_once_each(content.points), content.prefill))
    changed = _facts(content) | summary | {"recorded_at": utc_now(), "host": host, "home": home}
    if job_id is not None:
        changed["job_id"] = job_id
    for name, value in changed.items():
        setattr(row, name, value)
    row.points = len(_once_each(content.points))
    row.samples = max(row.samples, content.first_sample + len(content.samples))
    tags = session.scalars(select(BenchmarkTag.tag).where(BenchmarkTag.benchmark_id == row.id).order_by(BenchmarkTag.tag))
    row.sought = plain_text(searched_text(content.header, host, row.note, tuple(tags)))
    session.flush()


def _row(session: Session, content: BenchmarkContent, host: str, home: str) -> BenchmarkRun:
    """The run's row, made if it is missing, and locked: job and worker may both write down what is new of a run."""
    new = _facts(content) | {
        "id": content.header.id,
        "host": host,
        "home": home,
        "points": 0,
        "samples": 0,
        "failed": 0,
        "noisy": 0,
        "recorded_at": utc_now(),
        "note": "",
        "is_baseline": False,
        "sought": "",
    }
    insert_missing(session, BenchmarkRun, [new])
    found = select(BenchmarkRun).where(BenchmarkRun.id == content.header.id).with_for_update()
    return session.scalars(found.execution_options(populate_existing=True)).one()


def _facts(content: BenchmarkContent) -> dict[str, Any]:
    header, subject = content.header, content.header.subject
    serving = serving_of(header)
    facts = {
        "state": content.state,
        "problem": content.problem,
        "engine_id": subject.engine_id,
        "name": subject.name,
        "model": subject.model,
        **{key: _word(serving.get(key)) for key in _OF_RECIPE},
        "driver": header.driver,
        "is_imported": header.imported_from is not None,
        "workload_key": header.workload.key,
        "workload": header.workload.words,
        "hardware": hardware_of(header),
        "series": series_of(header),
        "concurrencies": list(header.concurrencies),
        "repeats": header.repeats,
        "header": _plain(header),
        "began_at": header.began_at,
        "ended_at": content.ended_at,
    }
    return {name: plain_text(value) if isinstance(value, str) else value for name, value in facts.items()}


def _word(value: object) -> str | None:
    """What a run was served with, where it is a text as it should be: settings may be anybody's."""
    return value if isinstance(value, str) else None


def _add_points(session: Session, content: BenchmarkContent) -> None:
    id_ = content.header.id
    known = session.execute(select(BenchmarkPoint.concurrency, BenchmarkPoint.repeat).where(BenchmarkPoint.benchmark_id == id_))
    there = {(row.concurrency, row.repeat) for row in known}
    points = [
        {
            "benchmark_id": id_,
            "concurrency": each.concurrency,
            "repeat": each.repeat,
            "output_tokens_per_s": each.output_tokens_per_s,
            "ttft_p50": each.ttft and each.ttft.p50,
            "inter_token_p50": each.inter_token and each.inter_token.p50,
            "end_to_end_p50": each.end_to_end and each.end_to_end.p50,
            "record": _plain(each),
        }
        for each in _once_each(content.points)
        if (each.concurrency, each.repeat) not in there
    ]
    insert_missing(session, BenchmarkPoint, points)
    prefill = [
        {
            "benchmark_id": id_,
            "input_tokens": each.input_tokens,
            "repeat": each.repeat,
            "tokens_per_s": each.tokens_per_s or 0.0,  # of prompts that nobody answered
            "record": _plain(each),
        }
        for each in content.prefill
    ]
    insert_missing(session, BenchmarkPrefill, prefill)


def _once_each(points: Iterable[Point]) -> list[Point]:
    """What was measured first counts."""
    first: dict[tuple[int, int], Point] = {}
    for each in points:
        first.setdefault((each.concurrency, each.repeat), each)
    return list(first.values())


def _plain(record: BaseModel) -> Any:
    """As JSON that any database takes."""
    return plain_value(json.loads(record.model_dump_json()))
