"""Raw files of benchmark runs and evaluations: from their folders into the database, and out of it."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from roundhouse.serve.history.raw import MOST_BYTES, MOST_FILE_BYTES

from ..database.upserts import insert_missing
from ..errors import NotFoundError
from ..models import RecordFile
from .records import FileRow

__all__ = ["KeptFile", "delete_files", "files_of", "keep_files", "one_file", "raw_files"]

KeptFile = tuple[str, bytes]
"""A name with its folders, and the content compressed with gzip."""
_PACKED = ".gz"


def raw_files(folder: Path) -> Iterator[KeptFile]:
    """What a record's folder has kept, by name, as far as that is within limits. Links are nobody's raw files."""
    raw, taken = folder / "raw", 0
    if raw.is_symlink() or not raw.is_dir():
        return
    for path in sorted(raw.rglob("*")):
        if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(raw.resolve()):
            continue
        size = path.stat().st_size
        if size > MOST_FILE_BYTES or taken + size > MOST_BYTES:
            continue
        name, content = str(path.relative_to(raw)), path.read_bytes()
        taken += size
        yield (name.removesuffix(_PACKED), content) if name.endswith(_PACKED) else (name, gzip.compress(content, 6))


def keep_files(session: Session, record_id: str, files: Iterable[KeptFile]) -> None:
    """Write down those that are not there yet, one at a time: together they may be large."""
    for name, content in files:
        row = {"record_id": record_id, "name": name, "size": len(content), "content": content}
        insert_missing(session, RecordFile, [row])


def files_of(session: Session, record_id: str) -> tuple[FileRow, ...]:
    """Names and sizes, by name: one statement, which reads no content."""
    wanted = select(RecordFile.name, RecordFile.size).where(RecordFile.record_id == record_id).order_by(RecordFile.name)
    return tuple(FileRow(name=row.name, size=row.size) for row in session.execute(wanted))


def one_file(session: Session, record_id: str, name: str) -> bytes:
    """A file's content, compressed with gzip.

    Raises:
        NotFoundError: the record has none of this name.
    """
    content = session.scalar(select(RecordFile.content).where(RecordFile.record_id == record_id, RecordFile.name == name))
    if content is None:
        raise NotFoundError(f"{record_id} has no raw file {name}")
    return content


def delete_files(session: Session, record_ids: Sequence[str]) -> None:
    """Delete all of some records: one statement."""
    session.execute(delete(RecordFile).where(RecordFile.record_id.in_(record_ids)))
