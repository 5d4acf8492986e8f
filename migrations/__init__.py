"""Alembic migrations of the console's database. Empty until the console has one."""
