"""Engines on disk: the manifest, reading one, and the store of all of them under the home folder."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from roundhouse.errors import EngineError, UsageError

from .home import Home
from .kv_scales import KvScaleReport
from .plan import Plan
from .quality import Quality
from .recipe import Recipe

__all__ = ["Engine", "EngineStore", "FileRecord", "Manifest", "hash_file"]

MANIFEST = "engine.json"
CHECKPOINT = "checkpoint"


class FileRecord(BaseModel):
    """Size in bytes and SHA-256 (hex) of one file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: int
    sha256: str


class Manifest(BaseModel):
    """``engine.json``: what an engine is, what it was made from, and what became of each part."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    id: str
    name: str
    created: str
    """UTC, ISO 8601."""
    recipe: Recipe
    plan: Plan
    model_fingerprint: str
    """SHA-256 over the names, sizes and hashes of the input files."""
    versions: dict[str, str]
    hardware: dict[str, str]
    modules: dict[str, str]
    """What each module became: ``int4_awq g64``, ``fp8``, ``bf16``, ``bf16, scale folded in``."""
    kv_scales: KvScaleReport
    quality: Quality
    chat: bool
    """Whether the tokenizer has a chat template."""
    stage_seconds: dict[str, float]
    warnings: tuple[str, ...]
    files: dict[str, FileRecord]
    """Every file of the engine but this one, by path relative to the engine folder."""


class Engine:
    """One engine folder whose manifest was read."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def open(cls, folder: Path) -> Engine:
        """Read an engine folder and check that every file is there with its size.

        Raises:
            EngineError: the manifest is missing or of another format, or a file is missing or has
                another size. All of them are named.
        """
        engine = cls(folder, read_manifest(folder))
        manifest = engine.manifest
        engine._require([_size_problem(folder / name, record) for name, record in manifest.files.items()])
        return engine

    @property
    def checkpoint(self) -> Path:
        """The folder with the quantized checkpoint, config and tokenizer."""
        return self.folder / CHECKPOINT

    @property
    def total_bytes(self) -> int:
        """Bytes of every file but the manifest."""
        return sum(record.bytes for record in self.manifest.files.values())

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the engine from being removed while it runs; the kernel lets go when the process dies."""
        with (self.folder / MANIFEST).open() as manifest:
            fcntl.flock(manifest, fcntl.LOCK_SH)
            yield

    def verify(self) -> None:
        """Hash every file.

        Raises:
            EngineError: naming each file that changed.
        """
        self._require(
            [
                f"{name} has changed"
                for name, record in self.manifest.files.items()
                if hash_file(self.folder / name) != record.sha256
            ]
        )

    def _require(self, problems: list[str | None]) -> None:
        found = [problem for problem in problems if problem]
        if found:
            raise EngineError(
                f"engine {self.manifest.id} is damaged: {'; '.join(found)}",
                hint=f"Remove it with `roundhouse engines remove {self.manifest.id}` and build it again.",
            )


def read_manifest(folder: Path) -> Manifest:
    """Read an engine folder's ``engine.json``, and nothing else of it.

    Raises:
        EngineError: it is missing, or of another format.
    """
    try:
        text = (folder / MANIFEST).read_text()
    except OSError:
        raise EngineError(f"{folder} is not an engine: it has no readable {MANIFEST}") from None
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise EngineError(
            f"{folder / MANIFEST} cannot be read by this version: {where}: {first['msg']}",
            hint="Build the engine again, or use the version that wrote it.",
        ) from None


class EngineStore:
    """All engines of one home folder: ``<home>/engines/<id>``."""

    def __init__(self, home: Home) -> None:
        self.folder = home.engines

    def path(self, engine_id: str) -> Path:
        """Where the engine with this id is, or would be."""
        return self.folder / engine_id

    def __iter__(self) -> Iterator[Engine]:
        """Every readable engine, newest first; damaged ones are left out (see :meth:`damaged`)."""
        engines = [engine for _, engine in self._scan() if isinstance(engine, Engine)]
        return iter(sorted(engines, key=lambda engine: engine.manifest.created, reverse=True))

    def damaged(self) -> list[tuple[str, EngineError]]:
        """Folders that should be engines and cannot be opened, with the reason."""
        return [(name, engine) for name, engine in self._scan() if isinstance(engine, EngineError)]

    def find(self, wanted: str) -> Engine:
        """Open an engine by folder path, id, unique id prefix or name.

        Raises:
            UsageError: nothing matches, or several do.
            EngineError: the engine is there but damaged.
        """
        if "/" in wanted or (Path(wanted) / MANIFEST).exists():
            return Engine.open(Path(wanted))
        exact = self.path(wanted)
        if wanted and exact.is_dir() and not wanted.startswith("."):
            return Engine.open(exact)
        matches = {id_: name for id_, name in self._names().items() if wanted and (name == wanted or id_.startswith(wanted))}
        if len(matches) == 1:
            return Engine.open(self.path(*matches))
        known = ", ".join(f"{id_} ({name})" for id_, name in (matches or self._names()).items())
        problem = "is not an engine here" if not matches else "could be several engines"
        raise UsageError(
            f"{wanted!r} {problem}" + (f": {known}" if known else ""),
            hint=None if known else "`roundhouse build MODEL` makes one.",
        )

    def locate(self, wanted: str) -> Path:
        """The folder of an engine of this store, found as :meth:`find` does; a damaged one by its whole id.

        Raises:
            UsageError: nothing matches, or the engine lies elsewhere.
        """
        damaged = {name for name, _ in self.damaged()}
        named = [id_ for id_, name in self._names().items() if id_ in damaged and name == wanted]
        if wanted in damaged or len(named) == 1:
            return self.path(wanted if wanted in damaged else named[0])
        folder = self.find(wanted).folder
        if folder.parent.resolve() != self.folder.resolve():
            raise UsageError(f"{folder} is not in {self.folder}; delete the folder yourself")
        return folder

    def remove(self, folder: Path) -> None:
        """Delete a folder that :meth:`locate` answered. It leaves the list at once, and then the disk.

        What an earlier, killed removal left is deleted with it.

        Raises:
            UsageError: the engine is running.
        """
        _require_not_running(folder)
        removed = self.folder / ".removed"
        removed.mkdir(exist_ok=True)
        folder.rename(removed / f"{folder.name}-{time.time_ns()}")
        shutil.rmtree(removed, ignore_errors=True)

    def _names(self) -> dict[str, str]:
        """The name of every engine whose manifest can be read, damaged or not, by id."""
        names = {}
        for folder_name, _ in self._scan():
            with contextlib.suppress(EngineError):
                names[folder_name] = read_manifest(self.path(folder_name)).name
        return names

    def _scan(self) -> Iterator[tuple[str, Engine | EngineError]]:
        if not self.folder.is_dir():
            return
        for folder in sorted(self.folder.iterdir()):
            if folder.name.startswith(".") or not folder.is_dir():
                continue
            try:
                yield folder.name, Engine.open(folder)
            except EngineError as error:
                yield folder.name, error


def hash_file(path: Path) -> str:
    """SHA-256 of a file, hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``engine.json`` in a stable, readable form."""
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, sort_keys=True)
    (folder / MANIFEST).write_text(text + "\n")


def _require_not_running(folder: Path) -> None:
    try:
        with (folder / MANIFEST).open() as manifest:
            fcntl.flock(manifest, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return
    except BlockingIOError:
        raise UsageError(f"engine {folder.name} is running", hint="Stop its server first.") from None


def _size_problem(path: Path, record: FileRecord) -> str | None:
    try:
        size = path.stat().st_size
    except OSError:
        return f"{path.name} is missing"
    return None if size == record.bytes else f"{path.name} has {size:,} bytes instead of {record.bytes:,}"
