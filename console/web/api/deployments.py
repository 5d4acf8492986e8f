"""Deployments, for programs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ...access.sealing import Sealer
from ...deployments.actions import ask_deploy
from ...deployments.again import deploy_again, show_key
from ...deployments.listing import ListedDeployment, list_deployments
from ...deployments.live import LivePoint, live_points
from ...deployments.queries import deployment, log_lines
from ...deployments.records import DeploymentDetail
from ...deployments.requests import DeploymentKey, DeploymentLog, DeploymentRequest, StartedDeployment, UnloadRequest
from ...deployments.snippets import Snippet, snippets
from ...deployments.unloading import ask_undeploy, forget, give_up
from ...page_maps.looking import pool_pages
from ...page_maps.records import PoolPages
from ...paging import Paged
from ..deployment_list import DeploymentsWanted
from ..page import ListPage
from ..state import state_of
from ..who import Deployer, Reading, needs
from .asked import DeploymentId, IdempotencyKey

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/deployments", tags=["deployments"])


@router.get("", dependencies=[needs("read")])
def listed(session: Reading, part: ListPage, wanted: DeploymentsWanted) -> Paged[ListedDeployment]:
    """Deployments with what they do now, the newest first; those that are there unless `state` says otherwise."""
    return list_deployments(session, wanted, part)


@router.post("", status_code=202)
def deploy(
    request: Request,
    response: Response,
    actor: Deployer,
    new: DeploymentRequest,
    idempotency_key: IdempotencyKey = None,
) -> StartedDeployment:
    """Deploy an engine. The answer comes at once; the deployment's `state` says how it goes."""
    sealer, secrets = _sealer(request), new.secrets
    with state_of(request).database.writing() as session:
        row, job = ask_deploy(session, actor, new.settings, secrets, sealer, on_host=new.host, idempotency_key=idempotency_key)
        return _started(response, row.id, job.id)


@router.get("/{deployment_id}", dependencies=[needs("read")])
def one(session: Reading, deployment_id: DeploymentId) -> DeploymentDetail:
    """One deployment: its settings, where it answers, and what it counts now."""
    return deployment(session, deployment_id)


@router.delete("/{deployment_id}", status_code=204)
def put_away(request: Request, actor: Deployer, deployment_id: DeploymentId) -> None:
    """Remove a deployment that has ended, with its log. Its integrity events stay."""
    with state_of(request).database.writing() as session:
        forget(session, actor, deployment_id)


@router.post("/{deployment_id}/unload", status_code=202)
def unload(
    request: Request,
    response: Response,
    actor: Deployer,
    deployment_id: DeploymentId,
    how: UnloadRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> StartedDeployment:
    """End a deployment; requests that run get some time. Asked twice, it answers with the job that is at it."""
    drain_s = (how or UnloadRequest()).drain_s
    with state_of(request).database.writing() as session:
        job = ask_undeploy(session, actor, deployment_id, drain_s=drain_s, idempotency_key=idempotency_key)
        return _started(response, deployment_id, job.id)


@router.post("/{deployment_id}/give-up")
def let_go(request: Request, actor: Deployer, deployment_id: DeploymentId) -> DeploymentDetail:
    """Count a deployment as dead that nobody can stop, as no worker of its host and home is alive."""
    database = state_of(request).database
    with database.writing() as session:
        give_up(session, actor, deployment_id)
    with database.reading() as session:
        return deployment(session, deployment_id)


@router.post("/{deployment_id}/redeploy", status_code=202)
def redeploy(
    request: Request,
    response: Response,
    actor: Deployer,
    deployment_id: DeploymentId,
    idempotency_key: IdempotencyKey = None,
) -> StartedDeployment:
    """Deploy again what has ended, with the settings, host and secrets that it had."""
    sealer = _sealer(request)
    with state_of(request).database.writing() as session:
        row, job = deploy_again(session, actor, deployment_id, sealer, idempotency_key=idempotency_key)
        return _started(response, row.id, job.id)


@router.post("/{deployment_id}/key")
def key(request: Request, actor: Deployer, deployment_id: DeploymentId) -> DeploymentKey:
    """The key that its OpenAI front asks for; that it was shown is written into the audit log."""
    sealer = _sealer(request)
    with state_of(request).database.writing() as session:
        return DeploymentKey(api_key=show_key(session, actor, deployment_id, sealer))


@router.get("/{deployment_id}/samples", dependencies=[needs("read")])
def samples(session: Reading, deployment_id: DeploymentId) -> list[LivePoint]:
    """What it counted over the last quarter of an hour, the oldest first."""
    deployment(session, deployment_id)
    return live_points(session, deployment_id)


@router.get("/{deployment_id}/pages", dependencies=[needs("read")])
async def pages(request: Request, deployment_id: DeploymentId) -> PoolPages:
    """Who holds each KV page now. Where its engine cannot be asked, `problem` says why, and the latest counts are told."""
    state = state_of(request)
    return await pool_pages(state.database, state.settings.home, deployment_id)


@router.get("/{deployment_id}/log", dependencies=[needs("read")])
def log(
    session: Reading,
    deployment_id: DeploymentId,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    most: Annotated[int, Query(ge=1, le=5_000)] = 1_000,
) -> DeploymentLog:
    """Lines of its log, the oldest first; the database keeps the last ones."""
    deployment(session, deployment_id)
    return DeploymentLog(lines=tuple(log_lines(session, deployment_id, after, most)))


@router.get("/{deployment_id}/snippets", dependencies=[needs("read")])
def programs(session: Reading, deployment_id: DeploymentId) -> tuple[Snippet, ...]:
    """Programs that talk to it, ready to be run; none before it has been ready."""
    return snippets(deployment(session, deployment_id))


def _sealer(request: Request) -> Sealer:
    return Sealer.of(state_of(request).settings.home)


def _started(response: Response, deployment_id: str, job_id: int) -> StartedDeployment:
    response.headers["location"] = f"/api/v1/deployments/{deployment_id}"
    return StartedDeployment(deployment_id=deployment_id, job_id=job_id)
