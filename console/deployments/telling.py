"""Writing down how a deployment is."""

from __future__ import annotations

from datetime import datetime

from ..database.base import utc_now
from ..models import LIVE_STATES, Deployment, DeploymentState
from ..supervisor.folder import SupervisorState

__all__ = ["tell", "tell_said"]


def tell(
    row: Deployment,
    state: DeploymentState,
    *,
    reason: str | None = None,
    hint: str | None = None,
    now: datetime | None = None,
) -> None:
    """Set the state, why it is so, and the times that go with it.

    Args:
        row: whose.
        state: which.
        reason: why it is not ready, or has ended.
        hint: what to do about it.
        now: this moment.
    """
    now = now or utc_now()
    if row.state != state:
        if state == "ready" and row.state != "unready":
            row.ready_at = now
        row.changed_at = now
        row.ended_at = None if state in LIVE_STATES else now
        row.state = state
    row.reason, row.hint = reason, hint


def tell_said(row: Deployment, said: SupervisorState) -> None:
    """Set what only its supervisor knows: where it answers, and how often it was started again.

    Model control's key is left out: who has it runs code there.
    """
    if said.endpoints is not None:
        row.endpoints = {name: value for name, value in said.endpoints.items() if name != "control_key"}
    row.restarts = said.restarts
