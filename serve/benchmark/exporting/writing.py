"""Writing runs as JSON, CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from roundhouse.build.extras import require_extra
from roundhouse.errors import SetupError

from ..records import SCHEMA_VERSION, Benchmark
from .columns import COLUMNS, ColumnType, rows_of
from .document import json_of

__all__ = ["Format", "export", "spreadsheet_text"]

Format = Literal["json", "csv", "parquet"]

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""With which a text begins that a spreadsheet would take for a formula, and run: somebody's model may be called like one."""


def export(runs: Sequence[Benchmark], format_: Format) -> bytes:
    """A whole file.

    Args:
        runs: what it is of; of JSON everything, of the others a row for each point.
        format_: of the file.

    Raises:
        SetupError: Parquet, and pyarrow is not there.
    """
    if format_ == "json":
        return json_of(runs).encode()
    return _csv(runs) if format_ == "csv" else _parquet(runs)


def spreadsheet_text(text: str) -> str:
    """A text for a cell of CSV; one that a spreadsheet would take for a formula is kept from being one."""
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _csv(runs: Sequence[Benchmark]) -> bytes:
    lines = [_line([column.name for column in COLUMNS])]
    lines += [_line([_cell(row[column.name], column.type) for column in COLUMNS]) for row in rows_of(runs)]
    return "".join(lines).encode()


def _line(cells: Sequence[Any]) -> str:
    """One line of CSV. Its end is chosen so that any line break within a text is quoted, and is a newline after all."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _cell(value: Any, type_: ColumnType) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if type_ == "text" and value is not None:
        return spreadsheet_text(str(value))
    return ("true" if value else "false") if isinstance(value, bool) else value


def _parquet(runs: Sequence[Benchmark]) -> bytes:
    require_extra("parquet")
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:  # such as one that wants another numpy than the rest
        raise SetupError(f"pyarrow cannot be used: {error}", hint="pip install 'roundhouse-llm[parquet]'") from None

    types: dict[ColumnType, Any] = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "yes or no": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
    }
    fields = [pa.field(column.name, types[column.type], metadata={"unit": column.unit}) for column in COLUMNS]
    schema = pa.schema(fields, metadata={"roundhouse.benchmarks": str(SCHEMA_VERSION)})
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows_of(runs)), schema=schema), sink)
    return sink.getvalue()
