"""Deployments: engines being served, as their hosts last told."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from ..database.base import Base

__all__ = ["LIVE_STATES", "Deployment", "DeploymentKind", "DeploymentLogLine", "DeploymentSample", "DeploymentState"]

DeploymentKind = Literal["local", "remote"]
"""``local``: on a Triton server of our own; ``remote``: loaded into a Triton server that somebody else runs."""
DeploymentState = Literal["starting", "ready", "unready", "restarting", "stopping", "stopped", "failed", "dead"]
"""``unready``: it runs, and would not answer a request now; ``failed``: it ended for good and said why; ``dead``: its processes
are gone without a word."""
LIVE_STATES: tuple[DeploymentState, ...] = ("starting", "ready", "unready", "restarting", "stopping")
"""While there may be processes of it."""


class Deployment(Base):
    """An engine being served, from the wish to its end."""

    __tablename__ = "deployment"
    __table_args__ = (
        CheckConstraint(
            "state IN ('starting', 'ready', 'unready', 'restarting', 'stopping', 'stopped', 'failed', 'dead')", name="state"
        ),
        CheckConstraint("kind IN ('local', 'remote')", name="kind"),
        Index("ix_deployment_state_created_at", "state", "created_at"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    """8 hex digits, drawn; its folder in the host's home is called like it."""
    name: Mapped[str]
    """What clients call the model."""
    engine_id: Mapped[str] = mapped_column(ForeignKey("engine.id"), index=True)
    kind: Mapped[str]
    host: Mapped[str]
    home: Mapped[str]
    settings: Mapped[dict[str, Any]]
    """Ports, overrides and the rest of :class:`roundhouse.console.deployments.settings.DeploymentSettings`; no secrets."""
    sealed: Mapped[str | None]
    """Its secrets, encrypted (:mod:`roundhouse.console.access.sealing`)."""
    state: Mapped[str]
    reason: Mapped[str | None]
    """Why it is not ready, failed or dead."""
    hint: Mapped[str | None]
    endpoints: Mapped[dict[str, Any] | None]
    """Where it answers: http, grpc, metrics, openai, chat."""
    restarts: Mapped[int] = mapped_column(default=0)
    created_by: Mapped[str]
    created_at: Mapped[datetime]
    changed_at: Mapped[datetime]
    """When its state last changed."""
    ready_at: Mapped[datetime | None]
    """When it last became ready."""
    ended_at: Mapped[datetime | None]
    seen_at: Mapped[datetime | None]
    """When its host last told of it."""


class DeploymentSample(Base):
    """What a deployment counted at a moment; the last quarter of an hour is kept."""

    __tablename__ = "deployment_sample"

    deployment_id: Mapped[str] = mapped_column(ForeignKey("deployment.id", ondelete="CASCADE"), primary_key=True)
    at: Mapped[datetime] = mapped_column(primary_key=True)
    values: Mapped[dict[str, Any]]
    """By short name: the fields of :class:`roundhouse.serve.triton.samples.Sample`."""


class DeploymentLogLine(Base):
    """A line of a deployment's log; the last ones are kept."""

    __tablename__ = "deployment_log"

    deployment_id: Mapped[str] = mapped_column(ForeignKey("deployment.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    """From 1."""
    at: Mapped[datetime]
    text: Mapped[str]
