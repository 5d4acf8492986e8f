"""Engines whose quality was not measured, and the GPU of a worker's machine.

A column is replaced rather than altered: SQLite would make the table anew, and what refers to it would go with the old one.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roundhouse.console.database.base import Json

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0007"
down_revision = "0006"

_QUALITY = ("top1_agreement", "kl")


def upgrade() -> None:
    """Do it."""
    op.add_column("worker", sa.Column("gpu", Json, nullable=True))
    for column in _QUALITY:
        _replace(column, sa.Column(f"new_{column}", sa.Double(), nullable=True))


def downgrade() -> None:
    """Undo it. Engines that were not measured are forgotten: the version before has no place for them."""
    op.execute("DELETE FROM engine WHERE top1_agreement IS NULL OR kl IS NULL")
    for column in _QUALITY:
        _replace(column, sa.Column(f"new_{column}", sa.Double(), nullable=False, server_default="0"))
    op.drop_column("worker", "gpu")


def _replace(column: str, new: sa.Column[float]) -> None:
    op.add_column("engine", new)
    op.execute(f"UPDATE engine SET new_{column} = {column}")
    op.drop_column("engine", column)
    op.execute(f"ALTER TABLE engine RENAME COLUMN new_{column} TO {column}")
