"""A worker's row: what it is and can do, that it is there, and when it ended."""

from __future__ import annotations

import os
import secrets
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any, get_args

import psutil
from sqlalchemy import update

from roundhouse import __version__
from roundhouse.build.extras import require_extra
from roundhouse.build.hardware import this_machine
from roundhouse.build.home import Home
from roundhouse.build.planner.gpus import local_gpu
from roundhouse.build.recipe import Target
from roundhouse.build.trtllm import target_verdicts, version_there
from roundhouse.errors import SetupError

from ..database.base import utc_now
from ..database.database import Database
from ..models import Worker
from .settings import WorkerSettings

__all__ = ["Registration", "targets_here", "tools_here", "versions_here"]

_PACKAGES = ("torch", "transformers", "nvidia-modelopt", "nvidia-pytriton", "numpy")


class Registration:
    """Keeps one worker's row.

    Args:
        settings: of the worker.
        database: where the row is.
    """

    def __init__(self, settings: WorkerSettings, database: Database) -> None:
        self._home = settings.home.path
        self._host = settings.host
        self._database = database
        self._id = secrets.token_hex(4)

    def begin(self) -> Worker:
        """Write down that the worker is there."""
        now = utc_now()
        free, total = _disk(self._home)
        worker = Worker(
            id=self._id,
            host=self._host,
            pid=os.getpid(),
            home=str(self._home),
            hardware=this_machine().model_dump(mode="json"),
            gpu=_gpu(),
            versions=versions_here() | tools_here(self._home),
            targets=targets_here(),
            disk_free=free,
            disk_total=total,
            started_at=now,
            seen_at=now,
        )
        with self._database.writing() as session:
            session.add(worker)
        return worker

    def renew(self) -> None:
        """Write down that it is still there, and how much disk is left."""
        free, total = _disk(self._home)
        values = {"seen_at": utc_now(), "disk_free": free, "disk_total": total}
        with self._database.writing() as session:
            session.execute(update(Worker).where(Worker.id == self._id).values(**values))

    def end(self) -> None:
        """Write down that it ends."""
        now = utc_now()
        with self._database.writing() as session:
            session.execute(update(Worker).where(Worker.id == self._id).values(seen_at=now, ended_at=now))


def targets_here() -> list[str]:
    """The targets that this installation can build and run on this machine now. Imports none of what they need."""
    verdicts = target_verdicts(version_there())
    if local_gpu() is None:
        verdicts = dict.fromkeys(verdicts, "this machine shows no GPU")
    try:
        require_extra("build", "serve")
    except SetupError as error:
        verdicts["torch"] = error.message
    return [target for target in get_args(Target) if verdicts.get(target) is None]


def _gpu() -> dict[str, Any] | None:
    found = local_gpu()
    return None if found is None else found.model_dump(mode="json")


def versions_here() -> dict[str, str]:
    """Versions of what matters to engines; what is not installed is left out."""
    found = {"roundhouse": __version__, "python": python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def tools_here(home: Path) -> dict[str, str]:
    """What measures, where it is installed in an environment of its own; it is not started to find that out."""
    from roundhouse.serve.benchmark.aiperf.locate import PINNED, VARIABLE, environment_folder

    if (environment_folder(Home(home)) / "bin" / "aiperf").is_file():
        return {"aiperf": PINNED}
    return {"aiperf": "installed"} if os.environ.get(VARIABLE) or shutil.which("aiperf") else {}


def _disk(folder: Path) -> tuple[int, int]:
    """Bytes free and in all where a folder is, or would be."""
    while not folder.exists():
        folder = folder.parent
    usage = psutil.disk_usage(str(folder))
    return usage.free, usage.total
