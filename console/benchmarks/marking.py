"""What people put on benchmark runs: notes, tags, and the pin of a baseline."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.records import BenchmarkHeader

from ..access.actor import Actor
from ..access.audit import audit
from ..database.upserts import insert_missing
from ..errors import FieldError, NotFoundError
from ..models import BenchmarkRun, BenchmarkTag
from .series import searched_text
from .stored import stored

__all__ = ["MOST_NOTE", "MOST_TAGS", "set_baseline", "set_note", "set_tags"]

MOST_NOTE, MOST_TAGS = 4_000, 20
_TAG = re.compile(r"[\w][\w.:/+-]{0,39}")


def set_note(session: Session, actor: Actor, benchmark_id: str, note: str) -> None:
    """Write something beside a run; an empty text removes it.

    Raises:
        ForbiddenError: this actor may not.
        NotFoundError: there is no such run.
        FieldError: it is too long.
    """
    row = _row(session, actor, benchmark_id)
    note = note.strip()
    if len(note) > MOST_NOTE:
        raise FieldError("note", f"a note has {MOST_NOTE:,} characters at most; this has {len(note):,}")
    if note != row.note:
        row.note = note
        _seek_anew(session, row)
        audit(session, actor, "benchmark.note", "benchmark", row.id, name=row.name)


def set_tags(session: Session, actor: Actor, benchmark_id: str, tags: Iterable[str]) -> tuple[str, ...]:
    """Have a run carry these tags and no others; returns them in order.

    Raises:
        ForbiddenError: this actor may not.
        NotFoundError: there is no such run.
        FieldError: one is no tag, or they are too many.
    """
    row = _row(session, actor, benchmark_id)
    wanted = tuple(sorted({tag.strip().lower() for tag in tags if tag.strip()}))
    for tag in wanted:
        if not _TAG.fullmatch(tag):
            raise FieldError("tags", f"{tag!r} is no tag", hint="Use up to 40 letters, digits and . : / + - _ without spaces.")
    if len(wanted) > MOST_TAGS:
        raise FieldError("tags", f"a run has {MOST_TAGS} tags at most; these are {len(wanted)}")
    if wanted != _tags(session, row.id):
        session.execute(delete(BenchmarkTag).where(BenchmarkTag.benchmark_id == row.id))
        insert_missing(session, BenchmarkTag, [{"benchmark_id": row.id, "tag": tag} for tag in wanted])
        _seek_anew(session, row)
        audit(session, actor, "benchmark.tags", "benchmark", row.id, name=row.name, tags=list(wanted))
    return wanted


def set_baseline(session: Session, actor: Actor, benchmark_id: str, pinned: bool) -> None:
    """Pin a run as what later ones of its series are compared with, or unpin it.

    Raises:
        ForbiddenError: this actor may not.
        NotFoundError: there is no such run.
    """
    row = _row(session, actor, benchmark_id)
    if row.is_baseline != pinned:
        row.is_baseline = pinned
        audit(session, actor, "benchmark.pin" if pinned else "benchmark.unpin", "benchmark", row.id, name=row.name)


def _row(session: Session, actor: Actor, benchmark_id: str) -> BenchmarkRun:
    actor.require("build")
    wanted = select(BenchmarkRun).where(BenchmarkRun.id == benchmark_id, BenchmarkRun.deleted_at.is_(None))
    row = session.scalar(wanted.with_for_update())
    if row is None:
        raise NotFoundError(f"there is no benchmark run {benchmark_id}")
    return row


def _tags(session: Session, benchmark_id: str) -> tuple[str, ...]:
    wanted = select(BenchmarkTag.tag).where(BenchmarkTag.benchmark_id == benchmark_id).order_by(BenchmarkTag.tag)
    return tuple(session.scalars(wanted))


def _seek_anew(session: Session, row: BenchmarkRun) -> None:
    header = stored(BenchmarkHeader, row.header, f"benchmark run {row.id}")
    row.sought = searched_text(header, row.host, row.note, _tags(session, row.id))
