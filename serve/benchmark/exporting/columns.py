"""The columns of CSV and Parquet: a row is a point (``load``) or a prefill point (``prefill``), with facts of its run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import mean
from typing import Any, Literal

from ..points import EngineCounts, Percentiles, Point, PrefillPoint
from ..records import SCHEMA_VERSION, Benchmark

__all__ = ["COLUMNS", "Column", "ColumnType", "Row", "rows_of"]

ColumnType = Literal["text", "integer", "number", "yes or no", "time"]


@dataclass(frozen=True)
class Row:
    """What one row is made from; ``load`` or ``prefill`` is there, the other None."""

    run: Benchmark
    load: Point | None = None
    prefill: PrefillPoint | None = None

    @property
    def point(self) -> Point | PrefillPoint:
        """Whichever it is."""
        if self.load is not None:
            return self.load
        if self.prefill is not None:
            return self.prefill
        raise ValueError("a row of no point")


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str
    type: ColumnType
    unit: str
    """Empty where it has none."""
    of: Callable[[Row], Any]
    """None where a row does not have it."""


def rows_of(runs: Iterable[Benchmark]) -> Iterator[dict[str, Any]]:
    """Every point of every run, flat, in the order in which it was measured."""
    for run in runs:
        rows = [*(Row(run, load=point) for point in run.points), *(Row(run, prefill=point) for point in run.prefill)]
        for row in rows:
            yield {column.name: column.of(row) for column in COLUMNS}


def _recipe(key: str) -> Column:
    return Column(key, "text", "", lambda row: row.run.header.subject.recipe.get(key))


def _guard(row: Row) -> str | None:
    subject = row.run.header.subject
    guard = (subject.settings or subject.recipe).get("guard")
    return guard if isinstance(guard, str) else None


def _hardware(row: Row) -> str | None:
    hardware = row.run.header.environment.hardware
    return None if hardware is None else hardware.name


def _load(name: str, type_: ColumnType, unit: str, of: Callable[[Point], Any]) -> Column:
    return Column(name, type_, unit, lambda row: None if row.load is None else of(row.load))


def _latency(name: str, of: Callable[[Row], Percentiles | None]) -> list[Column]:
    def read(part: str) -> Callable[[Row], float | None]:
        return lambda row: None if (found := of(row)) is None else getattr(found, part)

    return [Column(f"{name}_{part}_s", "number", "s", read(part)) for part in ("mean", "p50", "p90", "p95", "p99")]


def _engine(name: str) -> Column:
    type_: ColumnType = "number" if name.endswith("_mean") else "integer"
    return Column(f"engine_{name}", type_, "", lambda row: getattr(row.point.engine, name, None))


def _gpus(point: Point | PrefillPoint, name: str, sum_up: Callable[[list[float]], float]) -> float | None:
    values = [value for gpu in point.gpus if (value := getattr(gpu, name)) is not None]
    return sum_up(values) if values else None


COLUMNS: tuple[Column, ...] = (
    Column("schema_version", "integer", "", lambda _: SCHEMA_VERSION),
    Column("run", "text", "", lambda row: row.run.id),
    Column("state", "text", "", lambda row: row.run.state),
    Column("run_began_at", "time", "UTC", lambda row: row.run.header.began_at),
    Column("driver", "text", "", lambda row: row.run.header.driver),
    Column("driver_version", "text", "", lambda row: row.run.header.driver_version),
    Column("imported_from", "text", "", lambda row: row.run.header.imported_from),
    Column("session", "text", "", lambda row: row.run.header.session),
    Column("subject", "text", "", lambda row: row.run.header.subject.kind),
    Column("name", "text", "", lambda row: row.run.header.subject.name),
    Column("model", "text", "", lambda row: row.run.header.subject.model),
    Column("engine_id", "text", "", lambda row: row.run.header.subject.engine_id),
    Column("server", "text", "", lambda row: row.run.header.subject.server),
    _recipe("target"),
    _recipe("role"),
    _recipe("weights"),
    _recipe("kv_cache"),
    Column("guard", "text", "", _guard),
    Column("host", "text", "", lambda row: row.run.header.environment.host),
    Column("hardware", "text", "", _hardware),
    Column("workload", "text", "", lambda row: row.run.header.workload.words),
    Column("workload_key", "text", "", lambda row: row.run.header.workload.key),
    Column("seed", "integer", "", lambda row: row.run.header.seed),
    Column("kind", "text", "", lambda row: "prefill" if row.load is None else "load"),
    Column("repeat", "integer", "", lambda row: row.point.repeat),
    Column("began_at", "time", "UTC", lambda row: row.point.began_at),
    _load("concurrency", "integer", "requests", lambda point: point.concurrency),
    _load("duration_s", "number", "s", lambda point: point.duration_s),
    _load("completed", "integer", "requests", lambda point: point.completed),
    Column("failed", "integer", "requests", lambda row: row.point.failures),
    _load("cancelled", "integer", "requests", lambda point: point.cancelled),
    _load("input_tokens", "integer", "tokens", lambda point: point.input_tokens),
    _load("output_tokens", "integer", "tokens", lambda point: point.output_tokens),
    _load("tokens_from", "text", "", lambda point: point.tokens_from),
    _load("output_tokens_per_s", "number", "tokens/s", lambda point: point.output_tokens_per_s),
    _load("input_tokens_per_s", "number", "tokens/s", lambda point: point.input_tokens_per_s),
    _load("total_tokens_per_s", "number", "tokens/s", lambda point: point.total_tokens_per_s),
    _load("requests_per_s", "number", "requests/s", lambda point: point.requests_per_s),
    Column("prompt_tokens", "integer", "tokens", lambda row: row.prefill and row.prefill.input_tokens),
    Column("prefill_tokens_per_s", "number", "tokens/s", lambda row: row.prefill and row.prefill.tokens_per_s),
    *_latency("ttft", lambda row: row.point.ttft),
    *_latency("inter_token", lambda row: None if row.load is None else row.load.inter_token),
    *_latency("end_to_end", lambda row: None if row.load is None else row.load.end_to_end),
    *(_engine(name) for name in EngineCounts.model_fields),
    Column("gpu_memory_used_most", "integer", "B", lambda row: _gpus(row.point, "memory_used_most", sum)),
    Column("gpu_energy_j", "number", "J", lambda row: _gpus(row.point, "energy_j", sum)),
    Column("gpu_utilization_mean", "number", "", lambda row: _gpus(row.point, "utilization_mean", mean)),
    Column("other_cores", "number", "cores", lambda row: row.point.other_cores),
    Column("noisy", "yes or no", "", lambda row: row.point.noisy),
    Column("prompt_tokens_measured", "number", "tokens", lambda row: row.prefill and row.prefill.measured_tokens),
)
"""In their order. Under one schema version columns are only added, at the end."""
