"""Deleting benchmark runs: what is known of them at once, and their folders as soon as the workers of their homes see it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from ..access.actor import Actor
from ..access.audit import audit_each
from ..database.base import utc_now
from ..errors import ConflictError, NotFoundError
from ..models import BenchmarkLevel, BenchmarkPoint, BenchmarkPrefill, BenchmarkRun, BenchmarkSample, BenchmarkTag
from .files import delete_files
from .silence import is_silent

__all__ = ["delete_runs", "forget_run"]

_PARTS = (BenchmarkPoint, BenchmarkPrefill, BenchmarkSample, BenchmarkLevel, BenchmarkTag)


def delete_runs(session: Session, actor: Actor, ids: Sequence[str]) -> None:
    """Delete runs with all that was measured and their raw files; all of them or, when one cannot be, none.

    However many they are, it takes a dozen statements.

    Raises:
        ForbiddenError: this actor may not.
        NotFoundError: one is not there.
        ConflictError: one is being measured.
    """
    actor.require("build")
    now = utc_now()
    columns = (BenchmarkRun.id, BenchmarkRun.name, BenchmarkRun.host, BenchmarkRun.home, BenchmarkRun.state)
    wanted = select(*columns, is_silent(BenchmarkRun, now).label("silent"))
    there = wanted.where(BenchmarkRun.id.in_(ids), BenchmarkRun.deleted_at.is_(None))
    rows = {row.id: row for row in session.execute(there.order_by(BenchmarkRun.id).with_for_update(of=BenchmarkRun))}
    missing = [id_ for id_ in ids if id_ not in rows]
    if missing:
        raise NotFoundError(f"there is no benchmark run {', '.join(missing)}; nothing was deleted")
    running = [id_ for id_, row in rows.items() if row.state == "running" and not row.silent]
    if running:
        raise ConflictError(
            f"benchmark run {', '.join(running)} is being measured; nothing was deleted",
            hint="Cancel its job, or end its command, first.",
        )
    told = {id_: {"name": row.name, "host": row.host} for id_, row in rows.items()}
    audit_each(session, actor, "benchmark.delete", "benchmark", told)
    _empty(session, list(rows))
    session.execute(delete(BenchmarkRun).where(BenchmarkRun.id.in_([row.id for row in rows.values() if not row.home])))
    # The rows of others stay until the folder is gone: a worker would find it again, and bring it back.
    emptied = {"deleted_at": now, "header": {}, "note": "", "sought": "", "is_baseline": False}
    session.execute(
        update(BenchmarkRun).where(BenchmarkRun.id.in_([row.id for row in rows.values() if row.home])).values(emptied)
    )
    session.flush()


def forget_run(session: Session, benchmark_id: str) -> None:
    """Delete all that is known of a run, whose folder is gone."""
    _empty(session, [benchmark_id])
    session.execute(delete(BenchmarkRun).where(BenchmarkRun.id == benchmark_id))


def _empty(session: Session, ids: Sequence[str]) -> None:
    for part in _PARTS:
        session.execute(delete(part).where(part.benchmark_id.in_(ids)))
    delete_files(session, ids)
