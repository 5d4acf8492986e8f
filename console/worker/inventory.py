"""Which engines lie in this home, and what the database knows of them: made the same, whoever built or removed them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.build.engine import MANIFEST, Engine, read_manifest
from roundhouse.build.home import Home
from roundhouse.errors import EngineError

from ..database.database import Database
from ..engines.recording import forget_replica, mark_replica, record_engine
from ..models import EngineReplica

__all__ = ["Found", "Inventory"]

_Signature = tuple[int, int, int]


@dataclass(frozen=True)
class Found:
    """A folder among the engines, as it was just found."""

    engine: Engine | None
    """None where its manifest cannot be read."""
    problem: str | None


class Inventory:
    """Looks at the engines of one home again and again. Manifests are read when they are new or have changed.

    Args:
        home: where they lie.
        host: this host's name.
    """

    def __init__(self, home: Home, host: str) -> None:
        self._home = home
        self._host = host
        self._read: dict[str, tuple[_Signature, Engine]] = {}

    def look(self) -> dict[str, Found]:
        """Every engine's folder, by id. One that lies under another's id is no engine of this home."""
        found = {folder.name: self._open(folder) for folder in self._folders()}
        self._read = {name: read for name, read in self._read.items() if name in found}
        return {name: each for name, each in found.items() if each.engine is None or each.engine.manifest.id == name}

    def reconcile(self, database: Database) -> None:
        """Make the database agree with what is there. Writes nothing when it does.

        What hashing found is not undone: an engine that was found damaged stays so until it is verified or built anew.
        """
        found = self.look()
        with database.reading() as session:
            if not list(self._differing(session, found)):
                return
        with database.writing() as session:
            for engine_id in list(self._differing(session, found)):
                self._settle(session, engine_id, found.get(engine_id))

    def _folders(self) -> Iterator[Path]:
        if self._home.engines.is_dir():
            yield from (each for each in sorted(self._home.engines.iterdir()) if each.name[0] != "." and each.is_dir())

    def _open(self, folder: Path) -> Found:
        if folder.is_symlink():
            return Found(None, f"{folder} is a link; an engine lies in the home itself")
        try:
            stat = (folder / MANIFEST).lstat()
            signature = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            before = self._read.get(folder.name)
            engine = before[1] if before and before[0] == signature else Engine(folder, read_manifest(folder))
        except OSError:
            return Found(None, f"{folder} has no readable {MANIFEST}")
        except EngineError as error:
            return Found(None, error.message)
        except Exception as error:  # whatever one folder holds, the others are looked at
            return Found(None, f"{folder / MANIFEST} cannot be read: {error!r}")
        self._read[folder.name] = signature, engine
        try:
            engine.check_sizes()
        except EngineError as error:
            return Found(engine, error.message)
        return Found(engine, None)

    def _differing(self, session: Session, found: Mapping[str, Found]) -> Iterator[str]:
        here = (EngineReplica.host == self._host, EngineReplica.home == str(self._home.path))
        columns = (EngineReplica.engine_id, EngineReplica.problem, EngineReplica.found_at)
        known = {row.engine_id: row for row in session.execute(select(*columns).where(*here))}
        for engine_id in {*known, *found}:
            row, now = known.get(engine_id), found.get(engine_id)
            if row is None:
                if now is not None and now.engine is not None:
                    yield engine_id
            elif now is None or (now.problem and now.problem != row.problem) or _is_newer(now, row.found_at):
                yield engine_id

    def _settle(self, session: Session, engine_id: str, found: Found | None) -> None:
        there = (self._home.engines / engine_id).is_dir()  # a build or a removal may have come between
        if found is None:
            if not there:
                forget_replica(session, engine_id, self._host, self._home)
        elif there:
            if found.engine is not None:
                record_engine(session, found.engine, self._host, self._home)
            if found.problem is not None:
                mark_replica(session, engine_id, self._host, self._home, problem=found.problem)


def _is_newer(found: Found, since: datetime) -> bool:
    """Whether it was built after it was last recorded: then it is another copy."""
    return found.engine is not None and datetime.fromisoformat(found.engine.manifest.created) > since
