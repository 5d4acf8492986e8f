"""Brings a home's integrity events into the database, each once."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.build.home import Home

from ..database.database import Database
from ..database.upserts import insert_missing
from ..models import LIVE_STATES, Deployment, IntegrityRecord

if TYPE_CHECKING:
    from roundhouse.serve.engine.integrity import IntegrityEvent

__all__ = ["EventCollector"]

_MOST_BYTES = 2**20
"""Read at once: a file that has grown for long is caught up with bit by bit."""


@dataclass(frozen=True)
class _Place:
    """How far the file was read, and which file it was: it may be moved away at any time."""

    inode: int = 0
    offset: int = 0


class EventCollector:
    """Reads what the engine processes of one home appended since it last looked; from the beginning when it is new.

    An event that is in the database already is left out there, so nothing is remembered on disk.

    Args:
        database: where they go.
        home: whose file.
        host: this machine's name.
    """

    def __init__(self, database: Database, home: Home, host: str) -> None:
        self._database = database
        self._home = home
        self._host = host
        self._place = _Place()

    def collect(self) -> None:
        """Bring what is new."""
        while True:
            lines, place = self._new_lines()
            if lines:
                self._bring(lines)
            self._place = place
            if not lines:
                return

    def _new_lines(self) -> tuple[list[bytes], _Place]:
        """Whole lines, and where the next ones begin."""
        try:
            with self._home.integrity_events.open("rb") as file:
                about = os.fstat(file.fileno())
                same = about.st_ino == self._place.inode and about.st_size >= self._place.offset
                offset = self._place.offset if same else 0
                file.seek(offset)
                read = file.read(_MOST_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return [], _Place()
        whole = read[: read.rfind(b"\n") + 1]
        return whole.splitlines(), _Place(about.st_ino, offset + len(whole))

    def _bring(self, lines: list[bytes]) -> None:
        from roundhouse.serve.integrity_events import event_of  # only where there are events: it brings msgspec along

        events = [event for event in map(event_of, lines) if event is not None]
        with self._database.writing() as session:
            serving = self._serving(session)
            insert_missing(session, IntegrityRecord, [self._row(event, serving) for event in events])

    def _serving(self, session: Session) -> dict[str, list[Deployment]]:
        """The live deployments of this home, by engine."""
        here = (Deployment.host == self._host, Deployment.home == str(self._home.path))
        found: dict[str, list[Deployment]] = defaultdict(list)
        for row in session.scalars(select(Deployment).where(*here, Deployment.state.in_(LIVE_STATES))):
            found[row.engine_id].append(row)
        return found

    def _row(self, event: IntegrityEvent, serving: dict[str, list[Deployment]]) -> dict[str, Any]:
        at = datetime.fromtimestamp(event.time, UTC)
        deployments = [row.id for row in serving.get(event.engine, []) if row.created_at <= at]
        return {
            "at": at,
            "host": self._host,
            "home": str(self._home.path),
            "engine_id": event.engine,
            "deployment_id": deployments[0] if len(deployments) == 1 else None,
            "event": event.event,
            "kind": event.kind,
            "request_id": event.request_id,
            "answer": event.answer,
            "step": event.step,
            "column": event.column,
            "page": event.page,
            "expected_tag": event.expected_tag,
            "found_tag": event.found_tag,
            "last_holders": [msgspec.to_builtins(holder) for holder in event.last_holders],
        }
