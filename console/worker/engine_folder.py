"""Where the engine lies that a job is about."""

from __future__ import annotations

import re
from pathlib import Path

from roundhouse.build.store import EngineStore
from roundhouse.errors import EngineError

from ..engines.recording import forget_replica
from .task import Task

__all__ = ["engine_folder"]

_ID = re.compile(r"[0-9a-f]{16}")


def engine_folder(task: Task) -> tuple[str, Path]:
    """The id and the folder of the engine in a task's payload. The engine itself may be damaged.

    Raises:
        EngineError: this home does not have it; the database is told.
    """
    engine_id = str(task.payload["engine_id"])
    folder = EngineStore(task.home).path(engine_id)
    if not _ID.fullmatch(engine_id):  # it must name no other folder
        raise EngineError(f"{engine_id!r} is no engine's id")
    if not folder.is_dir():
        with task.publishing() as (session, _):
            forget_replica(session, engine_id, task.host, task.home)
        raise EngineError(f"engine {engine_id} is not in {task.home.path} on {task.host}")
    return engine_id, folder
