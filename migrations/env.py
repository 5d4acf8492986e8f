"""Alembic's way to the console's tables. The connection comes from :mod:`roundhouse.console.database.schema`."""

from __future__ import annotations

from alembic import context

from roundhouse.console.database.base import Base
from roundhouse.console.models import Job

__all__: list[str] = []

assert Job.metadata is Base.metadata  # every table is imported

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    compare_type=True,
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
