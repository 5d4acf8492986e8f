"""A console in which much was measured: 2,000 benchmark runs, with a million points and live samples, and evaluations.

The newest runs of some series are slower than their baselines, and requests failed in some: what is tested, and not only read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

from built import manifest_of
from runs_made_up import RunMadeUp, add_findings, add_run
from sqlalchemy import Select, delete, select
from sqlalchemy.orm import Session

from roundhouse.console.database.base import Base, utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import (
    BenchmarkLevel,
    BenchmarkPoint,
    BenchmarkPrefill,
    BenchmarkRun,
    BenchmarkSample,
    BenchmarkTag,
)

__all__ = ["MEASURED", "MODELS", "REGRESSED", "RUNS", "fill_benchmarks", "run_id"]

RUNS, SAMPLES, REPEATS, SERIES, ENGINES = 2_000, 480, 4, 40, 80
CONCURRENCIES = {1: 30.0, 8: 150.0, 16: 260.0, 32: 400.0, 64: 520.0}
MEASURED = RUNS * (SAMPLES + REPEATS * len(CONCURRENCIES))
"""Rows of points and of live samples together."""
SLOWER_EVERY, FAILING_EVERY, SINCE = 5, 8, 48
"""Every so many series; from this run of their fifty on."""
REGRESSED = sum(number % SLOWER_EVERY == 0 or number % FAILING_EVERY == 1 for number in range(SERIES))
"""Series that the page of trends flags."""
MODELS = tuple(f"org/model-{n}" for n in range(5))
_WEIGHTS = ("int4_awq", "fp8", "bf16", "int4_awq")
_HARDWARE = ("NVIDIA H200", "AMD EPYC")
_TIMES = ("ttft_p50", "inter_token_p50", "end_to_end_p50")
_LAYERS = 32
_LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
Adder = Callable[[Database, type[Base], Iterable[dict[str, Any]]], None]


def run_id(number: int) -> str:
    """The id of a run, by its number; 0 is the oldest."""
    return f"{number + 2**40:012x}"


def fill_benchmarks(database: Database, add: Adder) -> None:
    """Make them.

    Args:
        database: where.
        add: writes rows.
    """
    made = _made(database)
    add(database, BenchmarkRun, (_run(made[BenchmarkRun][0], n) for n in range(RUNS)))
    for table in (BenchmarkLevel, BenchmarkPoint, BenchmarkPrefill):
        add(database, table, _parts(made[table]))
    add(database, BenchmarkSample, _samples())
    add(database, BenchmarkTag, ({"benchmark_id": run_id(n), "tag": f"tag-{n % 7}"} for n in range(RUNS)))
    with database.writing() as session:
        for number in range(ENGINES):
            of = RunMadeUp("", manifest=manifest_of(f"{number:016x}", f"engine-{number}"))
            add_findings(session, f"{number + 2**44:012x}", of, {"arithmetic": -0.5, "needles": 0.1 * number})


def _made(database: Database) -> dict[type[Base], list[dict[str, Any]]]:
    """The rows of one run, with a manifest as large as a model of 32 layers has one. The run itself goes again."""
    modules = {f"model.layers.{n}.{name}": "int4_awq g64, input scale kept" for n in range(_LAYERS) for name in _LINEARS}
    with database.writing() as session:
        add_run(
            session,
            run_id(0),
            speeds={n: [speed * (1 + 0.01 * repeat) for repeat in range(REPEATS)] for n, speed in CONCURRENCIES.items()},
            manifest=manifest_of("0" * 16, "measured", modules=modules),
            prefill={length: [length / 5000 * (1 - 0.01 * repeat) for repeat in range(REPEATS)] for length in (512, 2048)},
        )
        session.flush()
        found: dict[type[Base], list[dict[str, Any]]] = {
            BenchmarkRun: _rows_of(session, select(BenchmarkRun).where(BenchmarkRun.id == run_id(0)))
        }
        for table in (BenchmarkLevel, BenchmarkPoint, BenchmarkPrefill):
            found[table] = _rows_of(session, select(table).where(table.benchmark_id == run_id(0)))
        session.execute(delete(BenchmarkRun).where(BenchmarkRun.id == run_id(0)))
    return found


def _rows_of(session: Session, wanted: Select[Any]) -> list[dict[str, Any]]:
    return [
        {column.key: getattr(row, column.key) for column in type(row).__mapper__.column_attrs}
        for row in session.scalars(wanted)
    ]


def _faster(number: int) -> float:
    """Runs differ a little, and every series gets faster in time; but the newest runs of some are slower by far."""
    slower = 0.85 if number % SERIES % SLOWER_EVERY == 0 and number // SERIES >= SINCE else 1
    return slower * (1 + 0.002 * (number // SERIES) + 0.01 * (number * 7919 % 11 - 5) / 5)


def _fails(number: int) -> bool:
    return number % SERIES % FAILING_EVERY == 1 and number // SERIES >= SINCE


def _run(made: dict[str, Any], number: int) -> dict[str, Any]:
    engine = number % ENGINES
    series = engine % SERIES
    began = utc_now() - timedelta(hours=RUNS - number)
    model = MODELS[series % len(MODELS)]
    times = {key: made[key] * _faster(number) for key in ("tokens_per_s_most", "tokens_per_s_alone", "prefill_tokens_per_s")}
    return made | times | {
        "id": run_id(number),
        "name": f"engine-{engine}",
        "engine_id": f"{engine:016x}",
        "model": model,
        "weights": _WEIGHTS[series // 10],
        "hardware": _HARDWARE[series // 5 % 2],
        "series": f"series-{series}",
        "samples": SAMPLES,
        "failed": REPEATS * len(CONCURRENCIES) if _fails(number) else 0,
        "noisy": number % 9 == 0,
        "note": "",
        "is_baseline": number // SERIES == 10,  # the tenth of fifty in every series
        "sought": f"{run_id(number)} engine-{engine} {model}",
        "began_at": began,
        "ended_at": began + timedelta(minutes=8),
        "recorded_at": began,
    }  # fmt: skip


def _parts(made: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for number in range(RUNS):
        own = {"benchmark_id": run_id(number)}
        for row in made:
            changed = {key: value * _faster(number) for key, value in row.items() if "tokens_per_s" in key}
            changed |= {key: row[key] / _faster(number) for key in _TIMES if row.get(key) is not None}
            if _fails(number) and "concurrency" in row:
                lost = {"failed": 4} if "record" not in row else {"record": row["record"] | {"failed": {"timeout": 1}}}
                changed |= lost
            yield row | changed | own


def _samples() -> Iterator[dict[str, Any]]:
    for number in range(RUNS):
        for moment in range(SAMPLES):
            yield {
                "benchmark_id": run_id(number),
                "number": moment,
                "at_s": float(moment),
                "stage": "8 at once, repeat 2",
                "output_tokens_per_s": 150.0,
                "running": 8,
                "waiting": 0,
                "kv_pages_used": 100 + moment % 50,
                "completed": moment // 4,
            }
