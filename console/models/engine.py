"""Engines, and which host holds which."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from ..database.base import Base

__all__ = ["EngineRecord", "EngineReplica", "ReplicaState"]

ReplicaState = Literal["present", "damaged"]
"""``damaged``: it cannot be opened, or a file is not what the manifest says; ``problem`` tells."""


class EngineRecord(Base):
    """An engine, wherever it lies. It is immutable, so what its manifest says is told once; it outlives its files."""

    __tablename__ = "engine"

    id: Mapped[str] = mapped_column(primary_key=True)
    """16 hex digits, a hash of everything that shaped its bytes."""
    name: Mapped[str] = mapped_column(index=True)
    model: Mapped[str]
    target: Mapped[str]
    role: Mapped[str]
    weights: Mapped[str]
    group_size: Mapped[int | None]
    kv_cache: Mapped[str]
    total_bytes: Mapped[int] = mapped_column(BigInteger)
    """Of all its files."""
    base_bytes: Mapped[int] = mapped_column(BigInteger)
    checkpoint_bytes: Mapped[int] = mapped_column(BigInteger)
    kv_tokens: Mapped[int] = mapped_column(BigInteger)
    """As planned on the machine that built it."""
    top1_agreement: Mapped[float | None]
    """With the base, from 0 to 1; None where the build could not measure it."""
    kl: Mapped[float | None]
    manifest: Mapped[dict[str, Any]]
    """``engine.json``."""
    created_at: Mapped[datetime] = mapped_column(index=True)
    """When it was built, as its manifest says."""
    recorded_at: Mapped[datetime]
    """When the console first heard of it."""


class EngineReplica(Base):
    """A copy of an engine in a home of a host."""

    __tablename__ = "engine_replica"
    __table_args__ = (
        UniqueConstraint("engine_id", "host", "home", name="uq_engine_replica_place"),
        CheckConstraint("state IN ('present', 'damaged')", name="state"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    engine_id: Mapped[str] = mapped_column(ForeignKey("engine.id", ondelete="CASCADE"))
    host: Mapped[str]
    home: Mapped[str]
    folder: Mapped[str]
    state: Mapped[str]
    problem: Mapped[str | None]
    found_at: Mapped[datetime]
    verified_at: Mapped[datetime | None]
    """When all of its files were last hashed and found to be what the manifest says."""
