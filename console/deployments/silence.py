"""Deployments of which nobody tells any more: their state is what was last known, and may be long past."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, and_, select

from ..jobs.liveness import GONE_AFTER, is_alive
from ..models import LIVE_STATES, Deployment, Worker

__all__ = ["has_worker", "is_silent", "was_silent"]


def is_silent(now: datetime) -> ColumnElement[bool]:
    """Whether a live deployment's host has told nothing for a while, for a WHERE. One that never began is not silent."""
    return and_(Deployment.state.in_(LIVE_STATES), Deployment.seen_at < now - GONE_AFTER)


def was_silent(row: Deployment, now: datetime) -> bool:
    """The same of a row that was read."""
    return row.state in LIVE_STATES and row.seen_at is not None and row.seen_at < now - GONE_AFTER


def has_worker(now: datetime) -> ColumnElement[bool]:
    """Whether a deployment's host and home have a live worker, which alone can stop it, for a SELECT or WHERE."""
    there = (Worker.host == Deployment.host, Worker.home == Deployment.home, is_alive(now))
    return select(Worker.id).where(*there).correlate(Deployment).exists()
