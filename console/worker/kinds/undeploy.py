"""Stops a deployment: running requests end, then its front, Triton and the engine do, and nothing of it is left."""

from __future__ import annotations

from typing import Any

from roundhouse.build.home import Home
from roundhouse.errors import RoundhouseError
from roundhouse.serve.remote import RemoteDeployment
from roundhouse.serve.triton.control import ModelControl

from ...access.sealing import Sealer
from ...deployments.ending import clear
from ...deployments.job import lock_deployment
from ...deployments.settings import DeploymentSettings
from ...deployments.telling import tell
from ...models import Deployment
from ...supervisor.process import stop
from ...supervisor.served import remote_triton
from ..task import Task
from .deploy import deployment_folder

__all__ = ["run"]

_DRAIN_S = 5.0


def run(task: Task) -> dict[str, Any]:
    """Do it. One whose processes are gone already is stopped as well.

    Args:
        task: its payload is ``{"deployment_id": …, "drain_s": seconds that running requests may go on}``.

    Returns:
        ``was_running``; and ``left``, when a model could not be unloaded from somebody else's Triton: why.
    """
    id_ = task.payload["deployment_id"]
    folder = deployment_folder(task, id_)
    drain_s = float(task.payload.get("drain_s", _DRAIN_S))
    with task.stage("drain", f"let running requests end, for {drain_s:g} s at most, and stop it"):
        was_running = stop(folder, drain_s=drain_s)
        task.say("it has ended" if was_running else "its processes were gone already")
    with task.stage("clear", "see that nothing is left of it"):
        with task.database.reading() as session:
            row = session.get(Deployment, id_)
            left = _unload(row, task.home) if row is not None and row.kind == "remote" else None
        if left:
            task.say(left)
        with task.publishing() as (session, _):
            tell(lock_deployment(session, id_), "stopped", reason=left)
        clear(task.database, task.home, folder)
    return {"was_running": was_running, "left": left}


def _unload(row: Deployment, home: Home) -> str | None:
    """See that somebody else's Triton has it no more; what to say when that cannot be."""
    settings = DeploymentSettings.model_validate(row.settings)
    try:
        secrets = Sealer.of(home).open(row.sealed) if row.sealed else {}
        triton = remote_triton(settings, secrets)
        RemoteDeployment.unload(ModelControl(triton.http, triton.control), settings.name, row.id)
    except RoundhouseError as error:
        return f"{settings.name} may still be loaded in {settings.triton_url}: {error.message}"
    return None
