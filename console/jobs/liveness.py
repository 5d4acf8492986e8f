"""Which workers are there."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_

from ..models import Worker

__all__ = ["GONE_AFTER", "HEARTBEAT", "is_alive"]

HEARTBEAT = timedelta(seconds=5)
"""How often a worker says that it is there."""
GONE_AFTER = 6 * HEARTBEAT
"""When a worker that has not said so counts as gone."""


def is_alive(now: datetime) -> ColumnElement[bool]:
    """Whether a worker is there, for a WHERE."""
    return and_(Worker.ended_at.is_(None), Worker.seen_at > now - GONE_AFTER)
