"""Delete an engine from this home: payload ``{"engine_id"}``, result ``{"engine_id", "bytes"}``."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from roundhouse.build.store import EngineStore
from roundhouse.errors import UsageError

from ...engines.recording import forget_replica
from ...models import LIVE_STATES, Deployment
from ..engine_folder import engine_folder
from ..task import Task

__all__ = ["run"]


def run(task: Task) -> dict[str, Any]:
    """Delete an engine's files here. Its row stays, as do copies on other hosts.

    Raises:
        UsageError: it is deployed on this host, or running.
        EngineError: it is not in this home.
    """
    engine_id, folder = engine_folder(task)
    store = EngineStore(task.home)
    inside = () if folder.is_symlink() else folder.rglob("*")  # of a link only the link goes
    size = sum(path.lstat().st_size for path in inside if path.is_file())
    with task.stage("remove", f"{folder}, {size:,} bytes"):
        using = select(Deployment.name).where(
            Deployment.engine_id == engine_id, Deployment.host == task.host, Deployment.state.in_(LIVE_STATES)
        )
        with task.publishing() as (session, _):
            if names := session.scalars(using.order_by(Deployment.name)).all():
                shown = ", ".join(names)
                raise UsageError(f"engine {engine_id} is deployed here: {shown}", hint="Stop these deployments first.")
            forget_replica(session, engine_id, task.host, task.home)
            store.withdraw(folder)
        store.delete_withdrawn()
    task.say(f"removed {folder}")
    return {"engine_id": engine_id, "bytes": size}
