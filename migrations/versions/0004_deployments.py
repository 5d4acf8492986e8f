"""Deployments, their samples and logs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roundhouse.console.database.base import Json, UtcDateTime

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Do it."""
    op.create_table(
        "deployment",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("engine_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("home", sa.String(), nullable=False),
        sa.Column("settings", Json, nullable=False),
        sa.Column("sealed", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("hint", sa.String(), nullable=True),
        sa.Column("endpoints", Json, nullable=True),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.Column("ready_at", UtcDateTime(), nullable=True),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.Column("seen_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint("kind IN ('local', 'remote')", name=op.f("ck_deployment_kind")),
        sa.CheckConstraint(
            "state IN ('starting', 'ready', 'unready', 'restarting', 'stopping', 'stopped', 'failed', 'dead')",
            name=op.f("ck_deployment_state"),
        ),
        sa.ForeignKeyConstraint(["engine_id"], ["engine.id"], name="fk_deployment_engine_id_engine"),
        sa.PrimaryKeyConstraint("id", name="pk_deployment"),
    )
    op.create_index("ix_deployment_engine_id", "deployment", ["engine_id"])
    op.create_index("ix_deployment_state_created_at", "deployment", ["state", "created_at"])
    op.create_table(
        "deployment_sample",
        sa.Column("deployment_id", sa.String(), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("values", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["deployment_id"], ["deployment.id"], name="fk_deployment_sample_deployment_id_deployment", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("deployment_id", "at", name="pk_deployment_sample"),
    )
    op.create_table(
        "deployment_log",
        sa.Column("deployment_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["deployment_id"], ["deployment.id"], name="fk_deployment_log_deployment_id_deployment", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("deployment_id", "number", name="pk_deployment_log"),
    )


def downgrade() -> None:
    """Undo it."""
    for table in ("deployment_log", "deployment_sample", "deployment"):
        op.drop_table(table)
