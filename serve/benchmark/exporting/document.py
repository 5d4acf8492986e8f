"""The JSON of runs: everything that was written down of them, read again by `check --baseline` and `import`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from roundhouse.errors import UsageError

from ..records import Benchmark
from ..store import POINTS, PREFILL, BenchmarkStore

__all__ = ["checked_runs", "is_export", "json_of", "read_export", "store_runs"]

_SCHEMA: Literal["roundhouse.benchmarks/1"] = "roundhouse.benchmarks/1"
_ID = re.compile(r"[0-9a-f]{12}")


class _Document(BaseModel):
    """A file of runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, serialize_by_alias=True)

    schema_: Literal["roundhouse.benchmarks/1"] = Field(default=_SCHEMA, alias="schema")
    runs: tuple[Benchmark, ...]


def json_of(runs: Sequence[Benchmark]) -> str:
    """Runs as one JSON document."""
    return _Document(runs=tuple(runs)).model_dump_json(indent=1) + "\n"


def is_export(path: Path) -> bool:
    """Whether a file says that it is one of ours; false also where it cannot be read."""
    try:
        with path.open("rb") as file:
            return _SCHEMA.rpartition("/")[0].encode() in file.read(200)
    except OSError:
        return False


def read_export(path: Path) -> list[Benchmark]:
    """The runs of a file.

    Raises:
        UsageError: it cannot be read, is not what `bench export --format json` writes, or holds no runs.
    """
    try:
        document = _Document.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"{path} is not a file of {_SCHEMA}: {where}: {first['msg']}",
            hint="`roundhouse bench export RUN --format json` writes one.",
        ) from None
    if not document.runs:
        raise UsageError(f"{path} holds no runs", hint="Export at least one: `roundhouse bench export RUN --format json`.")
    for run in document.runs:
        if not _ID.fullmatch(run.id):
            raise UsageError(f"{path}: {run.id!r} is not the id of a run")
    if len({run.id for run in document.runs}) < len(document.runs):
        raise UsageError(f"{path}: a run is there twice", hint="Export each run once.")
    return list(document.runs)


def checked_runs(store: BenchmarkStore, paths: Sequence[Path]) -> list[Benchmark]:
    """The runs of files as they would be taken into a home: nothing is written yet.

    Raises:
        UsageError: a file is none, two hold the same run, or a run is there already.
    """
    runs: dict[str, Benchmark] = {}
    of: dict[str, Path] = {}
    for path in paths:
        for run in read_export(path):
            if run.id in of:
                raise UsageError(f"run {run.id} is in {of[run.id]} and in {path}", hint="Name one of them.")
            header = run.header.model_copy(update={"imported_from": run.header.imported_from or path.name})
            runs[run.id], of[run.id] = run.model_copy(update={"header": header}), path
    there = {folder.name for folder in store.records}
    if already := [id_ for id_ in runs if id_ in there]:
        raise UsageError(f"already in this home: {', '.join(already)}", hint="Remove them first, or leave them as they are.")
    return list(runs.values())


def store_runs(store: BenchmarkStore, runs: Sequence[Benchmark]) -> list[Benchmark]:
    """Take checked runs into a home. Raw files and live samples are not among what was exported.

    Raises:
        ServeError: it cannot be written.
    """
    return [_store(store, run) for run in runs]


def _store(store: BenchmarkStore, run: Benchmark) -> Benchmark:
    writer = store.begin(run.header)
    try:
        writer.add(POINTS, *run.points)
        writer.add(PREFILL, *run.prefill)
        # What still ran when it was exported has no end here either: nobody will measure the rest.
        if run.state in ("finished", "failed", "cancelled"):
            writer.end(run.state, run.problem, at=run.ended_at)
    finally:
        writer.close()
    return store.open(run.id)
