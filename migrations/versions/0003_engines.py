"""Engines, and which host holds which."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roundhouse.console.database.base import Json, UtcDateTime

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Do it."""
    op.create_table(
        "engine",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("weights", sa.String(), nullable=False),
        sa.Column("group_size", sa.Integer(), nullable=True),
        sa.Column("kv_cache", sa.String(), nullable=False),
        sa.Column("total_bytes", sa.BigInteger(), nullable=False),
        sa.Column("base_bytes", sa.BigInteger(), nullable=False),
        sa.Column("checkpoint_bytes", sa.BigInteger(), nullable=False),
        sa.Column("kv_tokens", sa.BigInteger(), nullable=False),
        sa.Column("top1_agreement", sa.Double(), nullable=False),
        sa.Column("kl", sa.Double(), nullable=False),
        sa.Column("manifest", Json, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("recorded_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_engine"),
    )
    op.create_index("ix_engine_created_at", "engine", ["created_at"])
    op.create_index("ix_engine_name", "engine", ["name"])
    op.create_table(
        "engine_replica",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("engine_id", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("home", sa.String(), nullable=False),
        sa.Column("folder", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("found_at", UtcDateTime(), nullable=False),
        sa.Column("verified_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint("state IN ('present', 'damaged')", name=op.f("ck_engine_replica_state")),
        sa.ForeignKeyConstraint(["engine_id"], ["engine.id"], name="fk_engine_replica_engine_id_engine", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_engine_replica"),
        sa.UniqueConstraint("engine_id", "host", "home", name="uq_engine_replica_place"),
    )


def downgrade() -> None:
    """Undo it."""
    for table in ("engine_replica", "engine"):
        op.drop_table(table)
