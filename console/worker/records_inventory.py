"""Which benchmark runs and evaluations lie in this home, and what the database knows of them: the folders are the truth."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from roundhouse.build.home import Home
from roundhouse.errors import ServeError, UsageError
from roundhouse.serve.history import RecordAwayError, RecordStore
from roundhouse.serve.history.reader import HEADER, is_held

from ..database.base import utc_now
from ..database.database import Database
from .record_kinds import RECORD_KINDS, RecordKind
from .wire import plain_text

__all__ = ["RecordsInventory"]

_log = logging.getLogger(__name__)
_LEARN_EVERY_S = 60.0
_MOST_AT_ONCE = 50
"""Records that are written down in one look: a worker that ends does not wait for thousands."""

_Signature = tuple[object, ...]


class RecordsInventory:
    """Looks at the records of one home again and again. What has ended and is known is not opened any more.

    Args:
        database: where they are written down.
        home: where they lie.
        host: this host's name.
        clock: seconds, monotonic.
    """

    def __init__(self, database: Database, home: Home, host: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._of_kind = [_OfKind(kind, database, home, host, clock) for kind in RECORD_KINDS]

    def look(self) -> None:
        """Make the database agree with what is there, and delete what was deleted in the console."""
        for each in self._of_kind:
            each.look()


class _OfKind:
    def __init__(self, kind: RecordKind, database: Database, home: Home, host: str, clock: Callable[[], float]) -> None:
        self._kind = kind
        self._database = database
        self._home = home
        self._host = host
        self._clock = clock
        self._folder = home.path / kind.folder
        self._store = RecordStore(self._folder, kind.what)
        self._known: dict[str, str] = {}
        """States by id, of those rows that are this home's."""
        self._undeletable: set[str] = set()
        """Of which that was told."""
        self._seen: dict[str, _Signature] = {}
        """Of those that have not ended, and of those that cannot be written down."""
        self._told: dict[str, _Signature] = {}
        """Of those of which the log says that they cannot be written down."""
        self._away: set[str] = set()
        """Those that could not be read when they were looked at last: they are looked at again, after the others."""
        self._learn_at = 0.0

    def look(self) -> None:
        self._learn()
        try:
            with os.scandir(self._folder) as entries:
                names = [each.name for each in entries if each.name[0] != "." and each.is_dir(follow_symlinks=False)]
        except OSError:
            return  # it was never made, or the home cannot be reached: that says nothing of the records
        there = {name: self._folder / name for name in names if name in self._known or (self._folder / name / HEADER).is_file()}
        self._delete()
        for id_ in [each for each in self._known if each not in there]:
            self._forget(id_)
        new = (each for each in there.values() if self._is_new(each))
        for folder in islice(sorted(new, key=self._place, reverse=True), _MOST_AT_ONCE):
            self._record(folder)

    def _mine(self) -> list[ColumnElement[bool]]:
        return [self._kind.table.host == self._host, self._kind.table.home == str(self._home.path)]

    def _learn(self) -> None:
        """What the database knows; others may change it, so now and then again."""
        now = self._clock()
        if now < self._learn_at:
            return
        table = self._kind.table
        with self._database.reading() as session:
            wanted = select(table.id, table.state).where(*self._mine(), table.deleted_at.is_(None))
            self._known = {row.id: row.state for row in session.execute(wanted)}
        self._seen.clear()
        self._learn_at = now + _LEARN_EVERY_S

    def _delete(self) -> None:
        """Delete the folders of what was deleted in the console, and then the rows."""
        table = self._kind.table
        with self._database.reading() as session:
            deleted = session.scalars(select(table.id).where(table.deleted_at.is_not(None), *self._mine())).all()
        for id_ in deleted:
            self._known.pop(id_, None)
            folder = self._folder / id_
            try:
                if folder.is_dir():
                    self._store.remove(folder)
            except UsageError:  # it is being measured after all: it goes when it has ended
                continue
            except (ServeError, OSError) as error:  # one that cannot be deleted holds up no other
                if id_ not in self._undeletable:
                    _log.warning("%s cannot be deleted: %s", folder, error)
                    self._undeletable.add(id_)
                continue
            self._forget(id_)

    def _forget(self, id_: str) -> None:
        with self._database.writing() as session:
            if not (self._folder / id_).exists():  # it may have come between
                self._kind.forget(session, id_)
        self._known.pop(id_, None)
        self._seen.pop(id_, None)
        self._away.discard(id_)

    def _place(self, folder: Path) -> tuple[bool, int]:
        """The greatest is looked at first."""
        return folder.name not in self._away, _begun(folder)

    def _is_new(self, folder: Path) -> bool:
        """Whether there may be something that is not written down."""
        if self._known.get(folder.name, "running") != "running":
            return False
        return self._seen.get(folder.name) != _signature(folder)

    def _record(self, folder: Path) -> None:
        signature = _signature(folder)  # first: what comes while it is read is read the next time
        try:
            with self._database.writing() as session:
                self._kind.record(session, folder, self._host, self._home)
                table = self._kind.table
                state = session.scalar(select(table.state).where(table.id == folder.name, *self._mine()))
        except (OperationalError, InterfaceError, NoConnectionError):  # the database is away or busy
            raise
        except (
            RecordAwayError,
            OSError,
        ) as error:  # it may be whole: what is known of it stays, and the next look reads it again
            self._tell(folder, signature, error)
            self._away.add(folder.name)
            return
        except Exception as error:  # whatever one folder holds, the others are looked at
            state = self._fail(folder, self._tell(folder, signature, error))
        self._away.discard(folder.name)
        self._seen[folder.name] = signature
        if state is not None:
            self._known[folder.name] = state

    def _tell(self, folder: Path, signature: _Signature, error: Exception) -> str:
        """Have the log say once why one cannot be written down; returns that."""
        said = str(error).partition("\n")[0]
        problem = f"{folder} cannot be written down: {said}"
        if self._told.get(folder.name) != signature:
            _log.warning("%s", problem)
        self._told[folder.name] = signature
        return problem

    def _fail(self, folder: Path, problem: str) -> str | None:
        """Have one that is known as running, and that nobody measures any more, be known as failed: it would run for ever.

        Returns:
            Its state then; None where it is not known, or goes on.
        """
        if self._known.get(folder.name) != "running" or _is_held(folder) is not False:
            return None
        table = self._kind.table
        failed = {"state": "failed", "problem": plain_text(problem), "recorded_at": utc_now()}
        with self._database.writing() as session:
            there = (table.id == folder.name, table.state == "running", table.deleted_at.is_(None), *self._mine())
            session.execute(update(table).where(*there).values(failed))
        return "failed"


def _signature(folder: Path) -> _Signature:
    """Differs when something was written, or who measures has let go."""
    try:
        files = sorted((each.name, each.stat().st_size, each.stat().st_mtime_ns) for each in folder.iterdir())
    except OSError:
        files = []
    return _is_held(folder), *files


def _is_held(folder: Path) -> bool | None:
    """None where that cannot be told just now."""
    try:
        return is_held(folder)
    except RecordAwayError:
        return None


def _begun(folder: Path) -> int:
    try:
        return (folder / HEADER).stat().st_mtime_ns
    except OSError:
        return 0
