"""Deployments, for programs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from ...access.sealing import Sealer
from ...deployments.actions import ask_deploy, ask_undeploy, forget
from ...deployments.again import deploy_again
from ...deployments.listing import ListedDeployment, LogEnd, list_deployments, log_end
from ...deployments.live import LivePoint, live_points
from ...deployments.log_rows import KEPT_LINES
from ...deployments.queries import deployment
from ...deployments.records import DeploymentDetail
from ...deployments.settings import DeploymentSecrets, DeploymentSettings
from ...models import Deployment, Job
from ...paging import Paged
from ..deployment_list import DeploymentsWanted
from ..page import ListPage
from ..state import state_of
from ..who import Deployer, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/deployments", tags=["deployments"])
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=100)]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NewDeployment(_Body):
    """What is asked for."""

    settings: DeploymentSettings
    host: str | None = Field(default=None, max_length=255)
    """None takes a host that has the engine and a live worker."""
    api_key: SecretStr | None = None
    """What the OpenAI front is to ask for, with ``keyed``."""
    control_value: SecretStr | None = None
    """What the control header of a remote Triton holds."""


class Unload(_Body):
    """How it is to end."""

    drain_s: Annotated[float, Field(ge=0, le=600)] = 5.0
    """Seconds that running requests may go on."""


class Asked(_Body):
    """What was asked for, and the job that does it."""

    deployment_id: str
    job_id: int


@router.get("", dependencies=[needs("read")])
def listed(session: Reading, part: ListPage, wanted: DeploymentsWanted) -> Paged[ListedDeployment]:
    """Deployments with what they do now, the newest first; those that are there unless ``state`` says otherwise."""
    return list_deployments(session, wanted, part)


@router.post("", status_code=202)
def deploy(request: Request, response: Response, actor: Deployer, new: NewDeployment, key: Key = None) -> Asked:
    """Deploy an engine. The answer comes at once; ``state`` of the deployment says how it goes."""
    secrets = DeploymentSecrets(api_key=new.api_key, control_value=new.control_value)
    with state_of(request).database.writing() as session:
        made = ask_deploy(session, actor, new.settings, secrets, _sealer(request), on_host=new.host, idempotency_key=key)
        return _asked(response, made)


@router.get("/{deployment_id}", dependencies=[needs("read")])
def one(session: Reading, deployment_id: str) -> DeploymentDetail:
    """One deployment."""
    return deployment(session, deployment_id)


@router.delete("/{deployment_id}", status_code=204)
def put_away(request: Request, actor: Deployer, deployment_id: str) -> None:
    """Remove a deployment that has ended, with its log. Its integrity events stay."""
    with state_of(request).database.writing() as session:
        forget(session, actor, deployment_id)


@router.post("/{deployment_id}/unload", status_code=202)
def unload(
    request: Request, response: Response, actor: Deployer, deployment_id: str, how: Unload | None = None, key: Key = None
) -> Asked:
    """End a deployment; requests that run get some time."""
    with state_of(request).database.writing() as session:
        drain_s = (how or Unload()).drain_s
        job = ask_undeploy(session, actor, deployment_id, drain_s=drain_s, idempotency_key=key)
        return _asked(response, (session.get_one(Deployment, deployment_id), job))


@router.post("/{deployment_id}/redeploy", status_code=202)
def redeploy(request: Request, response: Response, actor: Deployer, deployment_id: str, key: Key = None) -> Asked:
    """Deploy again what has ended, with the settings, host and secrets that it had."""
    with state_of(request).database.writing() as session:
        return _asked(response, deploy_again(session, actor, deployment_id, _sealer(request), idempotency_key=key))


@router.get("/{deployment_id}/samples", dependencies=[needs("read")])
def samples(session: Reading, deployment_id: str) -> list[LivePoint]:
    """What it counted over the last quarter of an hour, the oldest first."""
    deployment(session, deployment_id)
    return live_points(session, deployment_id)


@router.get("/{deployment_id}/log", dependencies=[needs("read")])
def log(session: Reading, deployment_id: str) -> LogEnd:
    """The last lines of its log."""
    deployment(session, deployment_id)
    return log_end(session, deployment_id, KEPT_LINES)


def _sealer(request: Request) -> Sealer:
    return Sealer.of(state_of(request).settings.home)


def _asked(response: Response, made: tuple[Deployment, Job]) -> Asked:
    row, job = made
    response.headers["location"] = f"/api/v1/deployments/{row.id}"
    return Asked(deployment_id=row.id, job_id=job.id)
