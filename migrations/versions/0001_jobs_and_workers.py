"""Jobs, their stages and logs, and workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roundhouse.console.database.base import Json, UtcDateTime

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do it."""
    op.create_table(
        "worker",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("home", sa.String(), nullable=False),
        sa.Column("hardware", Json, nullable=False),
        sa.Column("versions", Json, nullable=False),
        sa.Column("targets", Json, nullable=False),
        sa.Column("disk_free", sa.BigInteger(), nullable=False),
        sa.Column("disk_total", sa.BigInteger(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("seen_at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_worker"),
    )
    op.create_index("ix_worker_host", "worker", ["host"])
    op.create_index("ix_worker_seen_at", "worker", ["seen_at"])
    op.create_table(
        "job",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("payload", Json, nullable=False),
        sa.Column("engine_id", sa.String(), nullable=True),
        sa.Column("deployment_id", sa.String(), nullable=True),
        sa.Column("target", sa.String(), nullable=True),
        sa.Column("host", sa.String(), nullable=True),
        sa.Column("home", sa.String(), nullable=True),
        sa.Column("requested_by", sa.String(), nullable=False),
        sa.Column("sought", sa.String(), nullable=False),
        sa.Column("idempotency_key", sa.String(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("most_attempts", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.String(), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("lease_until", UtcDateTime(), nullable=True),
        sa.Column("cancel_requested_at", UtcDateTime(), nullable=True),
        sa.Column("result", Json, nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("hint", sa.String(), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'interrupted')", name=op.f("ck_job_state")
        ),
        sa.CheckConstraint("(state = 'running') = (lease_until IS NOT NULL)", name=op.f("ck_job_lease")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name="fk_job_worker_id_worker"),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
        sa.UniqueConstraint("requested_by", "idempotency_key", name="uq_job_idempotency_key"),
    )
    op.create_index("ix_job_state_id", "job", ["state", "id"])
    op.create_index("ix_job_kind_id", "job", ["kind", "id"])
    op.create_index("ix_job_kind_state", "job", ["kind", "state"])
    op.create_index("ix_job_kind_sought", "job", ["kind", "sought"])
    op.create_index("ix_job_worker_id_id", "job", ["worker_id", "id"])
    op.create_index("ix_job_engine_id", "job", ["engine_id"])
    op.create_index("ix_job_deployment_id", "job", ["deployment_id"])
    op.create_table(
        "job_stage",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("began_at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.Column("what", sa.String(), nullable=False),
        sa.Column("result", sa.String(), nullable=True),
        sa.Column("done", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_stage_job_id_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "attempt", "name", name="pk_job_stage"),
    )
    op.create_table(
        "job_log",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_log_job_id_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "attempt", "number", name="pk_job_log"),
    )


def downgrade() -> None:
    """Undo it."""
    for table in ("job_log", "job_stage", "job", "worker"):
        op.drop_table(table)
