"""Runs as files that others read: JSON with everything, which is read again; CSV and Parquet with a row for each point."""

from .columns import COLUMNS, Column, rows_of
from .document import EXPORT_SCHEMA, is_export, json_of, read_export, store_runs
from .writing import Format, export

__all__ = [
    "COLUMNS",
    "EXPORT_SCHEMA",
    "Column",
    "Format",
    "export",
    "is_export",
    "json_of",
    "read_export",
    "rows_of",
    "store_runs",
]
