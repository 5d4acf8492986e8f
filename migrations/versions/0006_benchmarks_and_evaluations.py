"""Benchmark runs, evaluations, secrets of jobs, and what accounts like to see."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roundhouse.console.database.base import Json, UtcDateTime

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Do it."""
    op.add_column("job", sa.Column("sealed", sa.String(), nullable=True))
    op.create_table(
        "benchmark",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("home", sa.String(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("engine_id", sa.String(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=True),
        sa.Column("role", sa.String(), nullable=True),
        sa.Column("weights", sa.String(), nullable=True),
        sa.Column("kv_cache", sa.String(), nullable=True),
        sa.Column("guard", sa.String(), nullable=True),
        sa.Column("driver", sa.String(), nullable=False),
        sa.Column("is_imported", sa.Boolean(), nullable=False),
        sa.Column("workload_key", sa.String(), nullable=False),
        sa.Column("workload", sa.String(), nullable=False),
        sa.Column("hardware", sa.String(), nullable=False),
        sa.Column("series", sa.String(), nullable=False),
        sa.Column("concurrencies", Json, nullable=False),
        sa.Column("repeats", sa.Integer(), nullable=False),
        sa.Column("tokens_per_s_most", sa.Double(), nullable=True),
        sa.Column("concurrency_most", sa.Integer(), nullable=True),
        sa.Column("tokens_per_s_alone", sa.Double(), nullable=True),
        sa.Column("prefill_tokens_per_s", sa.Double(), nullable=True),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("noisy", sa.Integer(), nullable=False),
        sa.Column("began_at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.Column("recorded_at", UtcDateTime(), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("is_baseline", sa.Boolean(), nullable=False),
        sa.Column("sought", sa.String(), nullable=False),
        sa.Column("deleted_at", UtcDateTime(), nullable=True),
        sa.Column("header", Json, nullable=False),
        sa.CheckConstraint(
            "state IN ('running', 'finished', 'failed', 'cancelled', 'interrupted')", name=op.f("ck_benchmark_state")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_benchmark_job_id_job", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_benchmark"),
    )
    op.create_index("ix_benchmark_deleted_at_began_at", "benchmark", ["deleted_at", "began_at"])
    op.create_index("ix_benchmark_engine_id", "benchmark", ["engine_id"])
    op.create_index("ix_benchmark_host_home", "benchmark", ["host", "home"])
    op.create_index("ix_benchmark_job_id", "benchmark", ["job_id"])
    op.create_index("ix_benchmark_series_began_at", "benchmark", ["series", "began_at"])
    op.create_table(
        "benchmark_level",
        sa.Column("benchmark_id", sa.String(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("repeats", sa.Integer(), nullable=False),
        sa.Column("output_tokens_per_s", sa.Double(), nullable=False),
        sa.Column("output_tokens_per_s_least", sa.Double(), nullable=False),
        sa.Column("output_tokens_per_s_most", sa.Double(), nullable=False),
        sa.Column("input_tokens_per_s", sa.Double(), nullable=False),
        sa.Column("requests_per_s", sa.Double(), nullable=False),
        sa.Column("ttft_p50", sa.Double(), nullable=True),
        sa.Column("ttft_p99", sa.Double(), nullable=True),
        sa.Column("inter_token_p50", sa.Double(), nullable=True),
        sa.Column("inter_token_p99", sa.Double(), nullable=True),
        sa.Column("end_to_end_p50", sa.Double(), nullable=True),
        sa.Column("end_to_end_p99", sa.Double(), nullable=True),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("noisy", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["benchmark_id"], ["benchmark.id"], name="fk_benchmark_level_benchmark_id_benchmark", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("benchmark_id", "concurrency", name="pk_benchmark_level"),
    )
    op.create_table(
        "benchmark_point",
        sa.Column("benchmark_id", sa.String(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("repeat", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("output_tokens_per_s", sa.Double(), nullable=False),
        sa.Column("ttft_p50", sa.Double(), nullable=True),
        sa.Column("inter_token_p50", sa.Double(), nullable=True),
        sa.Column("end_to_end_p50", sa.Double(), nullable=True),
        sa.Column("record", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["benchmark_id"], ["benchmark.id"], name="fk_benchmark_point_benchmark_id_benchmark", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("benchmark_id", "concurrency", "repeat", name="pk_benchmark_point"),
    )
    op.create_table(
        "benchmark_prefill",
        sa.Column("benchmark_id", sa.String(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("repeat", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("tokens_per_s", sa.Double(), nullable=False),
        sa.Column("record", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["benchmark_id"], ["benchmark.id"], name="fk_benchmark_prefill_benchmark_id_benchmark", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("benchmark_id", "input_tokens", "repeat", name="pk_benchmark_prefill"),
    )
    op.create_table(
        "benchmark_sample",
        sa.Column("benchmark_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("at_s", sa.Double(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("output_tokens_per_s", sa.Double(), nullable=True),
        sa.Column("running", sa.Integer(), nullable=True),
        sa.Column("waiting", sa.Integer(), nullable=True),
        sa.Column("kv_pages_used", sa.Integer(), nullable=True),
        sa.Column("completed", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["benchmark_id"], ["benchmark.id"], name="fk_benchmark_sample_benchmark_id_benchmark", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("benchmark_id", "number", name="pk_benchmark_sample"),
    )
    op.create_table(
        "benchmark_tag",
        sa.Column("benchmark_id", sa.String(), nullable=False),
        sa.Column("tag", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["benchmark_id"], ["benchmark.id"], name="fk_benchmark_tag_benchmark_id_benchmark", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("benchmark_id", "tag", name="pk_benchmark_tag"),
    )
    op.create_index("ix_benchmark_tag_tag", "benchmark_tag", ["tag"])
    op.create_table(
        "record_file",
        sa.Column("record_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("record_id", "name", name="pk_record_file"),
    )
    op.create_table(
        "evaluation",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("home", sa.String(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("engine_id", sa.String(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("base_name", sa.String(), nullable=True),
        sa.Column("gate", sa.String(), nullable=False),
        sa.Column("gate_points", sa.Double(), nullable=False),
        sa.Column("gate_reasons", Json, nullable=False),
        sa.Column("worst_difference", sa.Double(), nullable=True),
        sa.Column("began_at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.Column("recorded_at", UtcDateTime(), nullable=False),
        sa.Column("sought", sa.String(), nullable=False),
        sa.Column("deleted_at", UtcDateTime(), nullable=True),
        sa.Column("header", Json, nullable=False),
        sa.CheckConstraint("gate IN ('passed', 'failed', 'not measured')", name=op.f("ck_evaluation_gate")),
        sa.CheckConstraint(
            "state IN ('running', 'finished', 'failed', 'cancelled', 'interrupted')", name=op.f("ck_evaluation_state")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_evaluation_job_id_job", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_evaluation"),
    )
    op.create_index("ix_evaluation_deleted_at_began_at", "evaluation", ["deleted_at", "began_at"])
    op.create_index("ix_evaluation_engine_id", "evaluation", ["engine_id"])
    op.create_index("ix_evaluation_host_home", "evaluation", ["host", "home"])
    op.create_index("ix_evaluation_job_id", "evaluation", ["job_id"])
    op.create_table(
        "evaluation_score",
        sa.Column("evaluation_id", sa.String(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("stderr", sa.Double(), nullable=True),
        sa.Column("difference", sa.Double(), nullable=True),
        sa.Column("record", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluation.id"], name="fk_evaluation_score_evaluation_id_evaluation", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "task", name="pk_evaluation_score"),
    )
    op.create_table(
        "preference",
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_preference_user_id_user_account", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "key", name="pk_preference"),
    )


def downgrade() -> None:
    """Undo it."""
    for table in (
        "preference",
        "evaluation_score",
        "evaluation",
        "record_file",
        "benchmark_tag",
        "benchmark_sample",
        "benchmark_prefill",
        "benchmark_point",
        "benchmark_level",
        "benchmark",
    ):
        op.drop_table(table)
    op.drop_column("job", "sealed")
