"""The list of deployments, and one deployment as it goes along."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query
from fastapi.responses import Response
from sqlalchemy.orm import Session

from ...access.secrets import new_secret
from ...deployments.guarding import guard_of
from ...deployments.listing import hosts_with_deployments, list_deployments, log_end
from ...deployments.live import live_points
from ...deployments.queries import deployment
from ...deployments.records import DeploymentDetail
from ...deployments.snippets import KEY_VARIABLE, snippets
from ...integrity.queries import EventFilter, events
from ...jobs.queries import list_jobs
from ...jobs.records import JobFilter
from ...jobs.waiting import why_waiting
from ...models import DeploymentState
from ...paging import PageOf
from ..deployment_list import DeploymentStates, DeploymentsWanted
from ..list_url import ListUrl
from ..navigation import attention
from ..page import ListPage, Page
from ..page_maps import counted
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/deployments")
_USUAL: dict[str, object] = {"state": "live", "size": 50}
_LOG_LINES = 400
_FEW = PageOf(size=5)
_TABLE_ROWS = 15


@router.get("", dependencies=[needs("read")])
def listed(
    page: Page, session: Reading, part: ListPage, wanted: DeploymentsWanted, state: DeploymentStates = "live"
) -> Response:
    """Deployments, those that are there unless asked otherwise."""
    named = {**wanted.model_dump(), "state": state}
    return page(
        "deployments/list.html",
        deployments=list_deployments(session, wanted, part),
        wanted=wanted,
        state=state,
        state_options=_options(get_args(DeploymentState)),
        host_options=_options(hosts_with_deployments(session)),
        failing=attention(session).failing,
        filtered=named != {"state": "live", "text": None, "host": None, "engine": None},
        url=ListUrl("/deployments", _USUAL, **named, page=part.number, size=part.size),
    )


@router.get("/{deployment_id}", dependencies=[needs("read")])
def one(page: Page, session: Reading, deployment_id: str, snippet: Annotated[str, Query(max_length=40)] = "curl") -> Response:
    """One deployment."""
    found = deployment(session, deployment_id)
    points = live_points(session, deployment_id) if found.live else []
    programs = snippets(found)
    return page(
        "deployments/deployment.html",
        **(counted(found) | _now(session, found)),
        latest=points[-1].values if points else None,
        points=points[:: -max(1, len(points) // _TABLE_ROWS)],
        log=log_end(session, deployment_id, _LOG_LINES),
        guard=guard_of(session, found.engine_id, found.settings.overrides),
        snippets=programs,
        snippet=next((each for each in programs if each.name == snippet), programs[0] if programs else None),
        key_variable=KEY_VARIABLE,
        idempotency_key=new_secret(),
    )


@router.get("/{deployment_id}/now", dependencies=[needs("read")])
def now(page: Page, session: Reading, deployment_id: str, shape: str = "") -> Response:
    """State, pages, jobs and events, for a page that follows them; it is loaded anew when it would look otherwise."""
    found = deployment(session, deployment_id)
    if shape and shape != _shape(found):
        return Response(headers={"hx-refresh": "true"})
    return page.fragment("deployments/now.html", fragment=True, **_now(session, found))


def _options(values: Iterable[str]) -> list[tuple[str, str]]:
    return [(value, value) for value in values]


def _now(session: Session, found: DeploymentDetail) -> dict[str, Any]:
    jobs = list_jobs(session, JobFilter(deployment_id=found.id), _FEW)
    at_it = next((job for job in jobs.items if job.is_live), None)
    return {
        "deployment": found,
        "shape": _shape(found),
        "jobs": jobs,
        "unloading": at_it is not None and at_it.kind == "undeploy",
        "waits": None if at_it is None else why_waiting(session, at_it),
        "events": events(session, EventFilter(deployment=found.id), _FEW),
    }


def _shape(found: DeploymentDetail) -> str:
    """Which parts its page has: those for one that is there, that has answered, that ends, and that can be given up."""
    ends = "-ends" if found.state == "stopping" else ""
    left = "-left" if found.live and not found.has_worker else ""
    return f"{'live' if found.live else 'ended'}-{'known' if found.endpoints else 'unknown'}{ends}{left}"
