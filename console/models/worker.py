"""Workers: the processes that run jobs, and what each of them can run."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger
from sqlalchemy.orm import Mapped, mapped_column

from ..database.base import Base

__all__ = ["Worker"]


class Worker(Base):
    """One worker process, from its start to its end."""

    __tablename__ = "worker"

    id: Mapped[str] = mapped_column(primary_key=True)
    """Drawn at its start: a worker that is started again is another one."""
    host: Mapped[str] = mapped_column(index=True)
    pid: Mapped[int]
    home: Mapped[str]
    """Its home folder, on its host."""
    hardware: Mapped[dict[str, Any]]
    gpu: Mapped[dict[str, Any] | None]
    """The first GPU of its machine; None when there is none."""
    versions: Mapped[dict[str, Any]]
    targets: Mapped[list[str]]
    disk_free: Mapped[int] = mapped_column(BigInteger)
    """Bytes where its home is."""
    disk_total: Mapped[int] = mapped_column(BigInteger)
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime] = mapped_column(index=True)
    """Its last heartbeat."""
    ended_at: Mapped[datetime | None]
    """When it said that it ends; one that was killed never says so."""
