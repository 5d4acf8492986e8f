"""Which deployments a list shows, from its URL; pages and API say it alike."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Query

from ..deployments.queries import DeploymentFilter
from ..models import DeploymentState

__all__ = ["DeploymentStates", "DeploymentsWanted"]

DeploymentStates = Literal[DeploymentState, "live", "ended", "any"]


def _wanted(
    text: Annotated[str, Query(max_length=100)] = "",
    state: DeploymentStates = "live",
    host: Annotated[str, Query(max_length=255)] = "",
    engine: Annotated[str, Query(max_length=64)] = "",
) -> DeploymentFilter:
    return DeploymentFilter(
        text=text.strip() or None, state=None if state == "any" else state, host=host or None, engine=engine or None
    )


DeploymentsWanted = Annotated[DeploymentFilter, Depends(_wanted)]
