"""What people do with deployments: unload, deploy again, put away, see the key."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from ...access.sealing import Sealer
from ...deployments.again import deploy_again, show_key
from ...deployments.unloading import ask_undeploy, forget, give_up
from ..page import Page
from ..rendering import redirect
from ..state import state_of
from ..who import Deployer

__all__ = ["router"]

router = APIRouter(prefix="/deployments/{deployment_id}")
Key = Annotated[str, Form(max_length=100)]


@router.post("/unload")
def unload(
    request: Request,
    actor: Deployer,
    deployment_id: str,
    drain_s: Annotated[float, Form(ge=0, le=600)] = 5.0,
    idempotency_key: Key = "",
) -> Response:
    """Ask for its end."""
    with state_of(request).database.writing() as session:
        ask_undeploy(session, actor, deployment_id, drain_s=drain_s, idempotency_key=idempotency_key or None)
    return redirect(f"/deployments/{deployment_id}")  # which says that it is being unloaded


@router.post("/redeploy")
def redeploy(request: Request, actor: Deployer, deployment_id: str, idempotency_key: Key = "") -> Response:
    """Ask for the same again."""
    state = state_of(request)
    with state.database.writing() as session:
        sealer = Sealer.of(state.settings.home)
        row, _ = deploy_again(session, actor, deployment_id, sealer, idempotency_key=idempotency_key or None)
        made = row.id
    return redirect(f"/deployments/{made}", flash="It is being deployed, with the settings that it had.")


@router.post("/give-up")
def let_go(request: Request, actor: Deployer, deployment_id: str) -> Response:
    """Count one that nobody can stop as dead."""
    with state_of(request).database.writing() as session:
        give_up(session, actor, deployment_id)
    return redirect(f"/deployments/{deployment_id}", flash="It was given up.")


@router.post("/forget")
def put_away(request: Request, actor: Deployer, deployment_id: str) -> Response:
    """Remove one that has ended from the lists."""
    with state_of(request).database.writing() as session:
        forget(session, actor, deployment_id)
    return redirect("/deployments?state=ended", flash=f"Deployment {deployment_id} and its log were removed.")


@router.post("/key")
def key(request: Request, page: Page, actor: Deployer, deployment_id: str) -> Response:
    """Show its API key, once."""
    state = state_of(request)
    with state.database.writing() as session:
        shown = show_key(session, actor, deployment_id, Sealer.of(state.settings.home))
    return page("deployments/key.html", deployment_id=deployment_id, key=shown)
