"""Result files that somebody sends: runs without a home, whose rows are all there is of them."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from sqlalchemy import select
from sqlalchemy.exc import DataError
from sqlalchemy.orm import Session

from roundhouse.errors import RoundhouseError, UsageError
from roundhouse.serve.benchmark.exporting import is_export, read_export
from roundhouse.serve.benchmark.importing import read_results
from roundhouse.serve.benchmark.records import Benchmark
from roundhouse.serve.history.raw import MOST_FILE_BYTES

from ..access.actor import Actor
from ..access.audit import audit
from ..database.turns import take_turn
from ..errors import ConflictError
from ..models import BenchmarkRun
from ..worker.wire import plain_text
from .content import BenchmarkContent
from .recording import record_benchmark

__all__ = ["MOST_BYTES", "SentFile", "add_imported", "read_sent"]

MOST_BYTES = 16 * 2**20
"""Of a file that is sent."""
_MOST_RUNS = 100
_LONGEST_NAME = 100
_NOWHERE = ""


class SentFile(BaseModel):
    """A file of results, as it came."""

    model_config = ConfigDict(frozen=True)

    name: str
    content: bytes
    server: str | None = None
    """What served, in words; files do not say."""
    model: str | None = None
    """What the model is, where its name at the endpoint does not say."""


def read_sent(file: SentFile) -> list[BenchmarkContent]:
    """The runs in a file: of aiperf, of vLLM's serve benchmark, or of ``bench export``. Reads no database.

    Raises:
        UsageError: it is none of these, or too large, or lacks something.
    """
    if len(file.content) > MOST_BYTES:
        raise UsageError(f"the file has {len(file.content):,} bytes; {MOST_BYTES:,} are read at most")
    name = plain_text(Path(file.name).name)[-_LONGEST_NAME:] or "results.json"
    with tempfile.TemporaryDirectory(prefix="roundhouse-import-") as folder:
        path = Path(folder) / "results.json"  # whatever name it came with
        path.write_bytes(file.content)
        try:
            if is_export(path):
                runs = read_export(path)
            else:
                found = read_results([path], server=file.server, model=file.model)
                runs = [
                    run.model_copy(update={"header": run.header.model_copy(update={"imported_from": name})}) for run in found
                ]
        except RoundhouseError as error:  # its folder is nobody's business
            raise UsageError(error.message.replace(str(path), name).replace(f"{folder}/", ""), hint=error.hint) from None
        except (ArithmeticError, ValueError) as error:
            raise UsageError(f"{name} cannot be read as results: {error}") from None
    if not 0 < len(runs) <= _MOST_RUNS:
        raise UsageError(f"{name} holds {len(runs)} runs; 1 to {_MOST_RUNS} are taken from one file")
    return [_content(run, name, file.content) for run in runs]


def add_imported(session: Session, actor: Actor, runs: Sequence[BenchmarkContent]) -> list[str]:
    """Write runs down that were read from a file: all of them or none. Returns their ids.

    Raises:
        ForbiddenError: this actor may not.
        ConflictError: one is there already.
        UsageError: one holds numbers that cannot be.
    """
    actor.require("build")
    take_turn(session)  # the same file may come twice at once
    there = _there(session)
    for content in runs:
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
    found = {id_: id_ for id_ in session.scalars(select(BenchmarkRun.id))}
    columns = (BenchmarkRun.id, BenchmarkRun.header["imported_sha256"])
    imported = select(*columns).where(BenchmarkRun.is_imported, BenchmarkRun.deleted_at.is_(None))
    for id_, hashes in session.execute(imported):
        found |= dict.fromkeys(hashes or (), id_)
    return found


def _content(run: Benchmark, name: str, content: bytes) -> BenchmarkContent:
    header = run.header.model_copy(update={"imported_from": run.header.imported_from or name})
    # What still ran when it was exported has no end here either: nobody will measure the rest.
    state = "interrupted" if run.state == "running" else run.state
    return BenchmarkContent(
        header=header,
        state=state,
        ended_at=run.ended_at,
        problem=run.problem,
        points=run.points,
        prefill=run.prefill,
        files=tuple(_kept(name, content)),
    )


def _kept(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    packed = gzip.compress(content, 6)
    if len(packed) <= MOST_FILE_BYTES:
        yield name, packed
