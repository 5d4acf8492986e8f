"""Exports: JSON that is read again, tables with a row for each point, and a documented schema."""

from __future__ import annotations

import csv
import io
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from benchmark_runs import made_benchmark, made_point, made_prefill, stored
from pydantic import BaseModel

from roundhouse.build.hardware import Hardware
from roundhouse.build.home import Home
from roundhouse.errors import SetupError, UsageError
from roundhouse.serve.benchmark import points, records
from roundhouse.serve.benchmark.exporting import checked_runs, export, is_export, read_export, store_runs
from roundhouse.serve.benchmark.exporting.columns import COLUMNS
from roundhouse.serve.benchmark.points import EngineCounts, GpuUse
from roundhouse.serve.benchmark.store import BenchmarkStore
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.measurement import about
from roundhouse.serve.measurement.about import Subject

DOCUMENT = Path(__file__).parents[3] / "docs" / "benchmark-schema.md"
ENGINE = EngineCounts(
    kv_pages=100,
    kv_pages_used_mean=12.5,
    kv_pages_used_most=40,
    running_most=8,
    waiting_most=2,
    prompt_tokens=2000,
    cached_tokens=100,
    steps=640,
    preemptions=0,
    tag_checks=5000,
    tag_mismatches=0,
    content_checks=0,
    content_mismatches=0,
)
GPUS = (
    GpuUse(index=0, name="H200", memory_used_most=100, energy_j=5.0, utilization_mean=0.5),
    GpuUse(index=1, name="H200", memory_used_most=50, energy_j=None, utilization_mean=0.7),
)


def full_run() -> records.Benchmark:
    manifest = {"recipe": {"target": "torch", "weights": "int4_awq", "kv_cache": "fp8", "role": "aggregated", "guard": "tags"}}
    subject = Subject(kind="engine", name="smol, the small", model="demo", manifest=manifest, settings={"guard": "off"})
    run = made_benchmark(subject=subject, prefill=[made_prefill(512, 1)])
    point = made_point(4, 0, 80, engine=ENGINE, gpus=GPUS, failed={"timeout": 2}, other_cores=0.5)
    return run.model_copy(update={"points": (point,)})


def test_json_is_everything_and_is_read_again(tmp_path: Path) -> None:
    run, other = full_run(), made_benchmark(id_="b" * 12)
    path = tmp_path / "runs.json"
    path.write_bytes(export([run, other], "json"))
    assert is_export(path)
    assert read_export(path) == [run, other]


def test_imported_runs_stand_in_the_history_as_they_were(tmp_path: Path) -> None:
    ended = datetime(2026, 5, 1, 13, tzinfo=UTC)
    run = full_run().model_copy(update={"ended_at": ended, "state": "failed", "problem": "the server went away"})
    running = made_benchmark(id_="b" * 12).model_copy(update={"state": "running", "ended_at": None})
    path = tmp_path / "runs.json"
    path.write_bytes(export([run, running], "json"))
    store = stored(tmp_path / "home")
    first, second = store_runs(store, checked_runs(store, [path]))
    assert first == run.model_copy(update={"header": run.header.model_copy(update={"imported_from": "runs.json"})})
    assert second.state == "interrupted"
    with pytest.raises(UsageError, match="already in this home: aaaaaaaaaaaa, bbbbbbbbbbbb"):
        checked_runs(store, [path])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{}", "runs: Field required"),
        ("nothing", "Invalid JSON"),
        ('{"schema": "roundhouse.benchmarks/2", "runs": []}', "schema: Input should be"),
        ('{"schema": "roundhouse.benchmarks/1", "runs": []}', "holds no runs"),
    ],
)
def test_what_is_no_export_is_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=words):
        read_export(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_export(tmp_path / "missing.json")
    assert not is_export(tmp_path / "missing.json")


def test_a_file_with_a_run_twice_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(export([made_benchmark(), made_benchmark(id_="b" * 12), made_benchmark()], "json"))
    store = BenchmarkStore(Home(tmp_path / "home"))
    with pytest.raises(UsageError, match="a run is there twice"):
        checked_runs(store, [path])
    assert list(store) == []


def test_an_id_that_is_a_path_gets_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(export([made_benchmark(id_="../../evil")], "json"))
    with pytest.raises(UsageError, match="is not the id of a run"):
        checked_runs(BenchmarkStore(Home(tmp_path / "home")), [path])
    assert list(tmp_path.iterdir()) == [path]


def test_csv_has_a_row_for_each_point_and_the_same_columns_in_each() -> None:
    rows = list(csv.DictReader(io.StringIO(export([full_run()], "csv").decode())))
    assert [row["kind"] for row in rows] == ["load", "prefill"]
    load, prefill = rows
    assert load["name"] == "smol, the small"
    assert (load["weights"], load["guard"]) == ("int4_awq", "off")
    assert (load["concurrency"], load["output_tokens_per_s"], load["failed"], load["noisy"]) == ("4", "80.0", "2", "true")
    assert (load["engine_kv_pages_used_most"], load["gpu_memory_used_most"], load["gpu_energy_j"]) == ("40", "150", "5.0")
    assert float(load["gpu_utilization_mean"]) == pytest.approx(0.6)
    assert load["ttft_p50_s"] == "0.625"
    assert (prefill["prompt_tokens"], prefill["repeat"], prefill["concurrency"], prefill["inter_token_p50_s"]) == (
        "512",
        "1",
        "",
        "",
    )
    assert float(prefill["prefill_tokens_per_s"]) == pytest.approx(1000)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "=cmd|' /C calc'!A0", "a=1", "'x", "plain"])
def test_no_text_is_a_formula_and_numbers_are_as_they_are(name: str) -> None:
    subject = Subject(kind="endpoint", name=name, model=name, server=name, manifest={"recipe": {"weights": name}})
    point = made_point(1, 0, other_cores=-0.5)
    run = made_benchmark(subject=subject, session=name).model_copy(update={"points": (point,)})
    (row,) = csv.DictReader(io.StringIO(export([run], "csv").decode(), newline=""))
    expected = f"'{name}" if name[0] in "=+-@\t\r" else name
    assert {row[column] for column in ("name", "model", "server", "session", "weights")} == {expected}
    assert row["other_cores"] == "-0.5"
    assert not any(row[column.name].startswith(("=", "+", "-", "@", "\t", "\r")) for column in COLUMNS if column.type == "text")


def test_parquet_has_the_same_with_types_and_units() -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not there", exc_type=ImportError)
    table = parquet.read_table(io.BytesIO(export([full_run(), made_benchmark(id_="b" * 12)], "parquet")))
    assert table.column_names == [column.name for column in COLUMNS]
    assert table.num_rows == 2 + 6
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["concurrency"], first["ttft_p50_s"], first["noisy"]) == (4, 0.625, True)
    assert first["run_began_at"] == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert table.schema.field("duration_s").metadata == {b"unit": b"s"}
    assert table.schema.metadata[b"roundhouse.benchmarks"] == b"1"


def test_without_pyarrow_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundhouse.build.extras.find_spec", lambda name: None)
    with pytest.raises(SetupError, match="lacks pyarrow") as caught:
        export([full_run()], "parquet")
    assert "roundhouse-llm[parquet]" in (caught.value.hint or "")


def test_a_pyarrow_that_cannot_be_loaded_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundhouse.build.extras.find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SetupError, match="pyarrow cannot be used"):
        export([full_run()], "parquet")


def documented(heading: str) -> list[str]:
    section = re.search(rf"^###? {heading}\n(.*?)(?=^##|\Z)", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert section, f"docs/benchmark-schema.md has no section {heading}"
    return re.findall(r"^\| `(\w+)` \|", section[1], re.MULTILINE)


@pytest.mark.parametrize(
    "model",
    [
        records.Benchmark,
        records.BenchmarkHeader,
        about.Subject,
        about.Environment,
        points.Point,
        points.Percentiles,
        points.EngineCounts,
        points.GpuUse,
        points.PrefillPoint,
        points.LiveSample,
        Workload,
        Hardware,
    ],
    ids=lambda model: model.__name__,
)
def test_the_documented_schema_is_the_models(model: type[BaseModel]) -> None:
    assert documented(f"`{model.__name__}`") == list(model.model_fields)


def test_the_documented_columns_are_those_that_are_written() -> None:
    assert documented("Columns of CSV and Parquet") == [column.name for column in COLUMNS]
