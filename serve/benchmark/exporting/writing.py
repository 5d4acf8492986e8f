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

__all__ = ["Format", "export"]

Format = Literal["json", "csv", "parquet"]


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


def _csv(runs: Sequence[Benchmark]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, [column.name for column in COLUMNS], lineterminator="\n")
    writer.writeheader()
    for row in rows_of(runs):
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
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
