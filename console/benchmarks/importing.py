"""Runs that were read from files that somebody sent: they have no home, and their rows are all there is of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.exc import DataError
from sqlalchemy.orm import Session

from roundhouse.errors import UsageError

from ..access.actor import Actor
from ..access.audit import audit
from ..database.turns import take_turn
from ..errors import ConflictError
from ..models import BenchmarkRun
from .content import BenchmarkContent
from .recording import record_benchmark

__all__ = ["add_imported"]

_NOWHERE = ""


def add_imported(session: Session, actor: Actor, runs: Sequence[BenchmarkContent]) -> list[str]:
    """Write runs down that were read from a file: all of them or none. Returns their ids.

    Raises:
        ForbiddenError: this actor may not.
        ConflictError: one is there already, or was deleted while its home still has it.
        UsageError: one holds numbers that cannot be.
    """
    actor.require("build")
    take_turn(session)  # the same file may come twice at once
    there, leaving = _there(session), _leaving(session)
    for content in runs:
        if (host := leaving.get(content.header.id)) is not None:
            raise ConflictError(
                f"run {content.header.id} was deleted here, and its home on {host} still has it; nothing was imported",
                hint="It goes when a worker of that home runs, and can be imported then.",
            )
        for known in (content.header.id, *content.header.imported_sha256):
            if known in there:
                raise ConflictError(f"this was imported before, as run {there[known]}; nothing was imported")
    for content in runs:
        try:
            record_benchmark(session, content, _NOWHERE, _NOWHERE)
        except (ArithmeticError, DataError) as error:
            told = str(getattr(error, "orig", error)).partition("\n")[0]
            raise UsageError(f"run {content.header.id} holds numbers that cannot be: {told}") from None
        header = content.header
        audit(session, actor, "benchmark.import", "benchmark", header.id, name=header.subject.name, file=header.imported_from)
    return [content.header.id for content in runs]


def _there(session: Session) -> dict[str, str]:
    """Which run has an id, or was read from a file of this hash."""
    found = {id_: id_ for id_ in session.scalars(select(BenchmarkRun.id).where(BenchmarkRun.deleted_at.is_(None)))}
    columns = (BenchmarkRun.id, BenchmarkRun.header["imported_sha256"])
    imported = select(*columns).where(BenchmarkRun.is_imported, BenchmarkRun.deleted_at.is_(None))
    for id_, hashes in session.execute(imported):
        found |= dict.fromkeys(hashes or (), id_)
    return found


def _leaving(session: Session) -> dict[str, str]:
    """Runs that were deleted here and wait for their homes' workers, with the hosts of these."""
    deleted = select(BenchmarkRun.id, BenchmarkRun.host).where(BenchmarkRun.deleted_at.is_not(None))
    return {row.id: row.host for row in session.execute(deleted)}
