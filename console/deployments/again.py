"""What needs a deployment's secrets: deploying it again as it was, and showing its key to who may use it."""

from __future__ import annotations

from sqlalchemy.orm import Session

from ..access.actor import Actor
from ..access.audit import audit
from ..access.sealing import Sealer
from ..errors import ConflictError, NotFoundError
from ..jobs.asking import asked_before
from ..models import LIVE_STATES, Deployment, Job
from .actions import ask_deploy, same_wish
from .settings import DeploymentSecrets, DeploymentSettings

__all__ = ["deploy_again", "show_key"]


def deploy_again(
    session: Session, actor: Actor, deployment_id: str, sealer: Sealer, *, idempotency_key: str | None = None
) -> tuple[Deployment, Job]:
    """Ask for the same again, on the same host, with the same secrets. Who asks again with the same key gets what is there.

    Args:
        session: a writing transaction.
        actor: who asks.
        deployment_id: of one that has ended.
        sealer: opens its secrets.
        idempotency_key: the same for the same wish.

    Raises:
        ForbiddenError: this actor may not deploy.
        NotFoundError: there is no such deployment, or its engine is gone.
        UsageError: the key was used for another wish.
        ConflictError: it has not ended, its host does not have the engine any more, or its name is taken there.
        SetupError: its secrets were sealed with another key.
    """
    actor.require("deploy")
    if (known := asked_before(session, actor, idempotency_key, "deploy")) is not None:
        old = session.get(Deployment, deployment_id)  # it may have been forgotten since
        return same_wish(session, known, DeploymentSettings.model_validate(old.settings) if old else None), known
    row = _find(session, deployment_id)
    if row.state in LIVE_STATES:
        raise ConflictError(f"deployment {row.name} ({row.id}) is {row.state}", hint="Unload it first.")
    settings = DeploymentSettings.model_validate(row.settings)
    secrets = DeploymentSecrets.model_validate(sealer.open(row.sealed) if row.sealed else {})
    return ask_deploy(session, actor, settings, secrets, sealer, on_host=row.host, idempotency_key=idempotency_key)


def show_key(session: Session, actor: Actor, deployment_id: str, sealer: Sealer) -> str:
    """The API key of a deployment; that it was shown is written down.

    Raises:
        ForbiddenError: this actor may not deploy.
        NotFoundError: there is no such deployment, or it asks for no key.
        SetupError: its secrets were sealed with another key.
    """
    actor.require("deploy")
    row = _find(session, deployment_id)
    key = sealer.open(row.sealed).get("api_key") if row.sealed else None
    if key is None:
        raise NotFoundError(f"deployment {row.name} ({row.id}) asks for no API key")
    audit(session, actor, "deployment.show-key", "deployment", row.id, name=row.name)
    return key


def _find(session: Session, deployment_id: str) -> Deployment:
    row = session.get(Deployment, deployment_id)
    if row is None:
        raise NotFoundError(f"there is no deployment {deployment_id}")
    return row
