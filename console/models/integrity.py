"""Rows that a page check stopped, collected from the hosts on which they were stopped."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from ..database.base import Base

__all__ = ["IntegrityRecord"]


class IntegrityRecord(Base):
    """One :class:`roundhouse.serve.engine.integrity.event.IntegrityEvent`, and where it came from."""

    __tablename__ = "integrity_event"
    __table_args__ = (
        UniqueConstraint("host", "home", "event", "at", name="uq_integrity_event_event"),
        Index("ix_integrity_event_at_id", "at", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    host: Mapped[str]
    home: Mapped[str]
    engine_id: Mapped[str] = mapped_column(index=True)
    deployment_id: Mapped[str | None] = mapped_column(index=True)
    """None where the engine was not served by the console, or by several deployments at once."""
    event: Mapped[str]
    """The name in the error that the client got."""
    kind: Mapped[str]
    request_id: Mapped[str]
    answer: Mapped[int]
    step: Mapped[int] = mapped_column(BigInteger)
    column: Mapped[int]
    page: Mapped[int | None]
    expected_tag: Mapped[int]
    found_tag: Mapped[int | None]
    last_holders: Mapped[list[dict[str, Any]]]
