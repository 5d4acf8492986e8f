"""Alembic migrations of the console's database: the only way its schema comes to be."""
