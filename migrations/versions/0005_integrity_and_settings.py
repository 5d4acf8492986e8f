"""Integrity events and settings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roundhouse.console.database.base import Json, UtcDateTime

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Do it."""
    op.create_table(
        "integrity_event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("home", sa.String(), nullable=False),
        sa.Column("engine_id", sa.String(), nullable=False),
        sa.Column("deployment_id", sa.String(), nullable=True),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("answer", sa.Integer(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("column", sa.Integer(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("expected_tag", sa.Integer(), nullable=False),
        sa.Column("found_tag", sa.Integer(), nullable=True),
        sa.Column("last_holders", Json, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_integrity_event"),
        sa.UniqueConstraint("host", "home", "event", "at", name="uq_integrity_event_event"),
    )
    op.create_index("ix_integrity_event_at_id", "integrity_event", ["at", "id"])
    op.create_index("ix_integrity_event_deployment_id", "integrity_event", ["deployment_id"])
    op.create_index("ix_integrity_event_engine_id", "integrity_event", ["engine_id"])
    op.create_table(
        "setting",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", Json, nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.Column("changed_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_setting"),
    )


def downgrade() -> None:
    """Undo it."""
    for table in ("setting", "integrity_event"):
        op.drop_table(table)
