"""One engine on disk: its manifest, and opening, holding and verifying it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from roundhouse.errors import EngineError

from .compiled import Compiled
from .events import OnStep
from .kv_scales import KvScaleReport
from .planner.plan import Plan
from .quality import Quality
from .recipe import Recipe

__all__ = ["CHECKPOINT", "MANIFEST", "Engine", "FileRecord", "Manifest", "hash_file", "read_manifest", "write_manifest"]

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

    format: Literal[2] = 2
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
    quality: Quality | None
    """None where this package cannot run the model, and so not measure it."""
    compiled: Compiled | None = None
    """What the target compiled; None on the torch target, which runs the checkpoint."""
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
        """Read an engine folder and check that every file is there with its size, in the folder itself.

        Raises:
            EngineError: the manifest is missing or of another format, or a file is missing, has
                another size, or is a link. All of them are named.
        """
        engine = cls(folder, read_manifest(folder))
        engine.check_sizes()
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

    def check_sizes(self) -> None:
        """See that every file is there with its size, and that none is a link: what lies elsewhere is changed by others.

        Raises:
            EngineError: naming each one that is not.
        """
        real = self.folder.resolve()
        self._require([_size_problem(real, name, record) for name, record in self.manifest.files.items()])

    def verify(self, on_step: OnStep = lambda *_: None) -> None:
        """Hash every file.

        Args:
            on_step: told after each file how many bytes of all are behind us.

        Raises:
            EngineError: naming each file that changed.
        """
        changed: list[str | None] = []
        done, total = 0, self.total_bytes
        for name, record in self.manifest.files.items():
            if hash_file(self.folder / name) != record.sha256:
                changed.append(f"{name} has changed")
            done += record.bytes
            on_step(done, total)
        self._require(changed)

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
        EngineError: it is missing, a link, or of another format.
    """
    if (folder / MANIFEST).is_symlink():
        raise EngineError(f"{folder} is not an engine: its {MANIFEST} is a link")
    try:
        text = (folder / MANIFEST).read_bytes()
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


def hash_file(path: Path) -> str:
    """SHA-256 of a file, hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``engine.json`` in a stable, readable form."""
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, sort_keys=True)
    (folder / MANIFEST).write_text(text + "\n")


def _size_problem(folder: Path, name: str, record: FileRecord) -> str | None:
    """What is wrong with a file of a resolved folder."""
    path = folder / name
    try:
        size = path.lstat().st_size
        if path.resolve() != path or not path.is_relative_to(folder):
            return f"{path.name} is a link, or lies outside of the engine"
    except (OSError, RuntimeError):  # a loop of links
        return f"{path.name} is missing"
    return None if size == record.bytes else f"{path.name} has {size:,} bytes instead of {record.bytes:,}"
