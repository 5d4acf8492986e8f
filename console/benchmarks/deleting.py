"""Deleting benchmark runs: what is known of them at once, and their folders as soon as the workers of their homes see it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ..access.actor import Actor
from ..access.audit import audit
from ..database.base import utc_now
from ..errors import ConflictError, NotFoundError
from ..models import BenchmarkLevel, BenchmarkPoint, BenchmarkPrefill, BenchmarkRun, BenchmarkSample, BenchmarkTag
from .files import delete_files
from .silence import is_silent

__all__ = ["delete_runs", "forget_run"]

_PARTS = (BenchmarkPoint, BenchmarkPrefill, BenchmarkSample, BenchmarkLevel, BenchmarkTag)


def delete_runs(session: Session, actor: Actor, ids: Sequence[str]) -> None:
    """Delete runs with all that was measured and their raw files; all of them or, when one cannot be, none.

    Raises:
        ForbiddenError: this actor may not.
        NotFoundError: one is not there.
        ConflictError: one is being measured.
    """
    actor.require("build")
    now = utc_now()
    wanted = select(BenchmarkRun).where(BenchmarkRun.id.in_(ids), BenchmarkRun.deleted_at.is_(None))
    rows = {row.id: row for row in session.scalars(wanted.order_by(BenchmarkRun.id).with_for_update())}
    missing = [id_ for id_ in ids if id_ not in rows]
    if missing:
        raise NotFoundError(f"there is no benchmark run {', '.join(missing)}; nothing was deleted")
    silent = select(BenchmarkRun.id).where(BenchmarkRun.id.in_(ids), is_silent(BenchmarkRun, now))
    gone = set(session.scalars(silent))
    running = [id_ for id_, row in rows.items() if row.state == "running" and id_ not in gone]
    if running:
        raise ConflictError(
            f"benchmark run {', '.join(running)} is being measured; nothing was deleted",
            hint="Cancel its job, or end its command, first.",
        )
    for row in rows.values():
        audit(session, actor, "benchmark.delete", "benchmark", row.id, name=row.name, host=row.host)
        _empty(session, row.id)
        if not row.home:
            session.delete(row)
            continue
        # The row stays until the folder is gone: a worker would find it again, and bring it back.
        row.deleted_at, row.header, row.note, row.sought, row.is_baseline = now, {}, "", "", False
    session.flush()


def forget_run(session: Session, benchmark_id: str) -> None:
    """Delete all that is known of a run, whose folder is gone."""
    _empty(session, benchmark_id)
    session.execute(delete(BenchmarkRun).where(BenchmarkRun.id == benchmark_id))


def _empty(session: Session, benchmark_id: str) -> None:
    for part in _PARTS:
        session.execute(delete(part).where(part.benchmark_id == benchmark_id))
    delete_files(session, benchmark_id)
