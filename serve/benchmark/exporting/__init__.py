"""Runs as files that others read: JSON with everything, which is read again; CSV and Parquet with a row for each point."""

from .document import checked_runs, is_export, json_of, read_export, store_runs
from .writing import Format, export, spreadsheet_text

__all__ = ["Format", "checked_runs", "export", "is_export", "json_of", "read_export", "spreadsheet_text", "store_runs"]
