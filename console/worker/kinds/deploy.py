"""Starts a deployment under its supervisor, and stays until it answers or has failed.

The deployment goes on when this ends, and when the worker does: only a cancelled job stops it again.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from roundhouse.build.store import EngineStore
from roundhouse.errors import RoundhouseError, ServeError

from ...deployments.ending import clear, folders_alone
from ...deployments.job import lock_deployment
from ...deployments.log_rows import last_numbers
from ...deployments.settings import DeploymentSettings
from ...deployments.telling import tell, tell_said
from ...models import LIVE_STATES, Deployment, DeploymentState, Job
from ...supervisor.folder import DeploymentFolder, Order, SupervisorState
from ...supervisor.log import LogReader
from ...supervisor.process import find, start, stop
from ..task import Task, TaskStoppedError

__all__ = ["deployment_folder", "run"]

_LOOK_S = 0.2
_MOST_LINES = 1000
_DRAIN_S = 0.0


def run(task: Task) -> dict[str, Any]:
    """Do it.

    Args:
        task: its payload is ``{"deployment_id": …}``.

    Returns:
        ``{"endpoints": …}``: where it answers.

    Raises:
        TaskStoppedError: the job was cancelled, and the deployment stopped again; or the worker ends, and it goes on.
        RoundhouseError: it could not start; says why.
    """
    id_ = task.payload["deployment_id"]
    folder = deployment_folder(task, id_)
    try:
        with task.stage("prepare", "look at the engine, write down what to run"):
            logged = _prepare(task, id_, folder)
        with task.stage("start", "start its supervisor"):
            start(folder, task.stopping)
        with task.stage("ready", "start Triton, load the engine, wait until it answers"):
            said = _follow(task, folder, logged)
    except TaskStoppedError:
        if _is_cancelled(task):
            stop(folder, drain_s=_DRAIN_S)
            _end(task, folder, "stopped", "its start was cancelled")
        raise
    except RoundhouseError as error:
        _end(task, folder, "failed", error.message, error.hint)
        raise
    with task.publishing() as (session, _):
        row = lock_deployment(session, id_)
        tell(row, "ready")
        tell_said(row, said)
        return {"endpoints": row.endpoints}


def deployment_folder(task: Task, deployment_id: str) -> DeploymentFolder:
    """Where a deployment of this task's home is."""
    return DeploymentFolder(task.home.path.resolve() / "deployments" / deployment_id)


def _prepare(task: Task, id_: str, folder: DeploymentFolder) -> int:
    """Write the folder; the number of its log's last line before. One that runs already is left alone."""
    with task.database.reading() as session:
        logged = last_numbers(session, [id_]).get(id_, 0)
    with folders_alone(task.home):
        with task.publishing() as (session, _):  # first: what counts as ended would have its folder cleared away
            row = lock_deployment(session, id_)
            tell(row, "starting")
            settings, sealed = DeploymentSettings.model_validate(row.settings), row.sealed
        EngineStore(task.home).open(settings.engine_id)
        if find(folder) is None:
            order = Order(deployment_id=id_, home=task.home.path.resolve(), settings=settings, sealed=sealed)
            folder.prepare(order, first_line=logged + 1)
    return logged


def _follow(task: Task, folder: DeploymentFolder, logged: int) -> SupervisorState:
    """Relay the log until it is ready.

    Raises:
        ServeError: it failed.
        TaskStoppedError: the job was cancelled, or the worker ends.
    """
    reader = LogReader(folder.path)
    while True:
        running = find(folder)  # first: what it says after that it says for good
        said = running.state if running else folder.state()
        for number, line in reader.after(logged, most=_MOST_LINES):
            logged = number
            task.say(line)
        if said is not None and said.state == "failed":
            raise ServeError(said.reason or "it could not start", hint=said.hint)
        if said is not None and said.state == "ready" and running is not None:
            return said
        if running is None:
            raise ServeError("its supervisor ended before it was ready; the log above has its last lines")
        task.check_stopping()
        task.stopping.wait(_LOOK_S)


def _is_cancelled(task: Task) -> bool:
    """Whether somebody wants it stopped; otherwise the worker ends, and the deployment need not."""
    with task.database.reading() as session:
        job = session.get(Job, task.claim.job_id)
        return job is not None and job.cancel_requested_at is not None


def _end(task: Task, folder: DeploymentFolder, state: DeploymentState, reason: str, hint: str | None = None) -> None:
    with task.publishing() as (session, _):
        row = session.scalar(select(Deployment).where(Deployment.id == folder.deployment_id).with_for_update())
        if row is not None and row.state in LIVE_STATES:
            tell(row, state, reason=reason, hint=hint)
    clear(task.database, task.home, folder)
