"""Hash every file of an engine: payload ``{"engine_id"}``, result ``{"engine_id", "files", "bytes"}``."""

from __future__ import annotations

from typing import Any

from roundhouse.build.store import EngineStore
from roundhouse.errors import EngineError

from ...engines.recording import mark_replica, record_engine
from ..engine_folder import engine_folder
from ..task import Task

__all__ = ["run"]


def run(task: Task) -> dict[str, Any]:
    """See that an engine's files are what its manifest says, and write down the answer.

    Raises:
        EngineError: it is damaged, or not in this home.
    """
    engine_id, _ = engine_folder(task)
    try:
        with task.stage("open", "the manifest, and every file's size"):
            engine = EngineStore(task.home).open(engine_id)
        files, size = len(engine.manifest.files), engine.total_bytes
        with task.stage("hash", f"{files} files, {size:,} bytes"):
            engine.verify(lambda done, total: task.progress(done / total if total else 1.0))
    except EngineError as error:
        with task.publishing() as (session, _):
            mark_replica(session, engine_id, task.host, task.home, problem=error.message)
        raise
    with task.publishing() as (session, _):
        record_engine(session, engine, task.host, task.home)
        mark_replica(session, engine_id, task.host, task.home, problem=None)
    task.say(f"{files} files are what the manifest says")
    return {"engine_id": engine_id, "files": files, "bytes": size}
