"""A console that has been used for years: rows by the ten thousand, copied from one of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

from console_benchmarks import fill_benchmarks
from populated import populate
from sqlalchemy import insert, select

from roundhouse.build.home import Home
from roundhouse.console.database.base import Base, utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import AuditEntry, Deployment, EngineRecord, EngineReplica, IntegrityRecord, Job, Stage

__all__ = ["ENGINES", "JOBS", "fill"]

ENGINES, JOBS, DEPLOYMENTS, EVENTS, AUDITED = 10_000, 100_000, 2_000, 10_000, 100_000
_STATES = ("succeeded",) * 16 + ("failed", "failed", "cancelled", "interrupted")
_WEIGHTS = ("int4_awq", "fp8", "bf16")
_STAGES = ("plan", "load", "calibrate", "quantize", "verify", "measure", "compile", "publish")
_BATCH = 5_000


def fill(database: Database, home: Home) -> None:
    """Make one of everything, and then very many."""
    populate(database, home)
    _add(database, EngineRecord, _engines(database))
    _add(database, EngineReplica, _replicas(database))
    _add(database, Job, _jobs())
    _add(database, Stage, _stages())
    _add(database, Deployment, _deployments(database))
    _add(database, IntegrityRecord, _events(database))
    _add(database, AuditEntry, _audited())
    fill_benchmarks(database, _add)


def _engine(number: int) -> str:
    return f"{number % ENGINES:016x}"


def _engines(database: Database) -> Iterator[dict[str, Any]]:
    made, first = _copy(database, EngineRecord), utc_now()
    for n in range(ENGINES):
        when = first - timedelta(minutes=n)
        yield made | {
            "id": _engine(n),
            "name": f"engine-{n}",
            "weights": _WEIGHTS[n % 3],
            "created_at": when,
            "recorded_at": when,
        }


def _replicas(database: Database) -> Iterator[dict[str, Any]]:
    made = _copy(database, EngineReplica)
    return (made | {"engine_id": _engine(n)} for n in range(ENGINES))


def _jobs() -> Iterator[dict[str, Any]]:
    first = utc_now() - timedelta(minutes=JOBS)
    for n in range(JOBS):
        began = first + timedelta(minutes=n)
        yield {
            "id": 1000 + n,
            "kind": "build" if n % 3 else "verify",
            "state": _STATES[n % len(_STATES)],
            "subject": f"engine-{n % ENGINES}",
            "payload": {"recipe": {"model": "demo:smollm2"}},
            "engine_id": _engine(n),
            "requested_by": f"user-{n % 50}",
            "created_at": began,
            "started_at": began,
            "ended_at": began + timedelta(seconds=50),
            "attempt": 1,
            "most_attempts": 2,
            "fence": 1,
        }


def _stages() -> Iterator[dict[str, Any]]:
    began = utc_now()
    for job in range(JOBS):
        for position, name in enumerate(_STAGES):
            own = {"job_id": 1000 + job, "attempt": 1, "name": name, "position": position, "what": "as it is"}
            yield own | {"began_at": began, "ended_at": began, "result": None, "done": 1.0}


def _deployments(database: Database) -> Iterator[dict[str, Any]]:
    made = _copy(database, Deployment) | {"state": "stopped", "ended_at": utc_now()}
    for n in range(DEPLOYMENTS):
        yield made | {"id": f"{n + 2**28:08x}", "name": f"deployment-{n}", "engine_id": _engine(n)}


def _events(database: Database) -> Iterator[dict[str, Any]]:
    made, first = _copy(database, IntegrityRecord), utc_now()
    return (made | {"event": f"request-{n}/1/0", "at": first - timedelta(minutes=n)} for n in range(EVENTS))


def _audited() -> Iterator[dict[str, Any]]:
    own = {"by": "browser", "address": "127.0.0.1", "subject_kind": "engine", "detail": {}}
    for n in range(AUDITED):
        yield own | {"at": utc_now(), "who": f"user-{n % 50}", "action": "build", "subject": _engine(n)}


def _copy(database: Database, table: type[Base]) -> dict[str, Any]:
    """What a row has, without what must differ."""
    with database.reading() as session:
        row = session.scalars(select(table).limit(1)).one()
        names = [column.key for column in table.__mapper__.column_attrs]
        return {name: getattr(row, name) for name in names if name != "id"}


def _add(database: Database, table: type[Base], rows: Iterable[dict[str, Any]]) -> None:
    left = iter(rows)
    while batch := list(islice(left, _BATCH)):
        with database.writing() as session:
            session.execute(insert(table), batch)
