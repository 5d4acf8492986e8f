"""`roundhouse bench list`, `show`, `compare`, `check`, `export`, `import` and `remove`, as they are typed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from benchmark_runs import made_benchmark, made_prefill, stored
from typer.testing import CliRunner

from roundhouse.build.home import Home
from roundhouse.errors import BenchmarkStoppedError, UsageError
from roundhouse.serve.benchmark.reading_commands import add_reading_commands
from roundhouse.serve.benchmark.records import Benchmark
from roundhouse.serve.benchmark.store import read_benchmark
from roundhouse.serve.measurement.about import Subject

OLD, NEW = "a" * 12, "b" * 12


def app_of() -> typer.Typer:
    app = typer.Typer()
    add_reading_commands(app)
    return app


def bench(*words: str, home: Path, code: int = 0) -> str:
    result = CliRunner().invoke(app_of(), [*words, "--home", str(home)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


def answer(*words: str, home: Path, code: int = 0) -> Any:
    return json.loads(bench(*words, "--json", home=home, code=code))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    slower = {1: [80.0, 81.0, 79.0], 8: [330.0, 331.0, 332.0]}
    old = made_benchmark(id_=OLD, prefill=[made_prefill(length, repeat) for repeat in range(3) for length in (512, 1024)])
    stored(tmp_path, old, made_benchmark(slower, id_=NEW, subject=Subject(kind="endpoint", name="llama", model="llama")))
    return tmp_path


def test_an_empty_home_says_how_to_begin(tmp_path: Path) -> None:
    assert "No benchmark runs yet" in bench("list", home=tmp_path)


def test_runs_are_listed_and_found_by_words_and_state(home: Path) -> None:
    text = bench("list", home=home)
    assert OLD in text
    assert "400.0" in text
    found = answer("list", home=home)
    assert {run["id"]: run["output_tokens_per_s"] for run in found["runs"]} == {OLD: 400.0, NEW: 331.0}
    assert [run["id"] for run in answer("list", "SMOL", "128 in", home=home)["runs"]] == [OLD]
    assert answer("list", "--state", "failed", home=home)["runs"] == []
    assert "No run is like that" in bench("list", "nobody", home=home)
    assert len(answer("list", "--limit", "1", home=home)["runs"]) == 1
    assert "1 older ones are not shown" in bench("list", "--limit", "1", home=home)


def test_a_list_counts_what_failed_and_was_disturbed_while_prefill_was_measured(tmp_path: Path) -> None:
    lost = made_prefill().model_copy(update={"failed": {"timeout": 7}, "other_cores": 0.9})
    stored(tmp_path, made_benchmark(id_=OLD, prefill=[lost]))
    (run,) = answer("list", home=tmp_path)["runs"]
    assert (run["failed"], run["noisy"]) == (7, 1)
    assert re.search(r" 7 *$", bench("list", home=tmp_path), re.MULTILINE)


def test_damaged_runs_are_named(home: Path) -> None:
    (home / "benchmarks" / NEW / "header.json").write_text("{}")
    found = answer("list", home=home)
    assert [run["id"] for run in found["runs"]] == [OLD]
    assert NEW in found["damaged"][0]
    assert NEW in bench("list", home=home)


def test_runs_that_are_removed_while_they_are_listed_are_no_damage(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = read_benchmark

    def others_remove(folder: Path) -> Benchmark:
        if folder.name == NEW:
            shutil.rmtree(folder)
        return read(folder)

    monkeypatch.setattr("roundhouse.serve.benchmark.store.read_benchmark", others_remove)
    found = answer("list", home=home)
    assert ([run["id"] for run in found["runs"]], found["damaged"]) == ([OLD], [])


def test_a_run_is_shown_for_people_and_for_programs(home: Path) -> None:
    text = bench("show", "aaa", home=home)
    for words in ("finished", "128 in, 64 out", "Some CPU", "torch 2.9.0", "396.0–404.0", "prefill tokens/s"):
        assert words in text
    assert answer("show", OLD, home=home)["points"][0]["output_tokens"] == 1000
    stored(home, made_benchmark({1: [100.0]}, id_="c" * 12))
    assert ", 1 repeat\n" in re.sub(" +\n", "\n", bench("show", "c", home=home))


def test_runs_are_compared(home: Path) -> None:
    text = bench("compare", OLD, NEW, home=home)
    for words in ("output tokens/s", "× 0.800", "(90%)", "What differs", "llama"):
        assert words in text
    assert answer("compare", OLD, NEW, home=home)["runs"][0]["quantities"][0]["ratio"]["value"] == 0.8
    with pytest.raises(UsageError, match="two runs"):
        bench("compare", OLD, home=home)


def test_engines_are_measured_by_turns_and_then_compared(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def measure(place: Home, wishes: Any, watcher: Any, *, command: str) -> list[Path]:
        asked.extend(wishes)
        return [place.path / "benchmarks" / OLD, place.path / "benchmarks" / NEW]

    monkeypatch.setattr("roundhouse.serve.benchmark.run.run_benchmarks", measure)
    urls = ("http://one:1", "http://two:2")
    load = ["--concurrency", "1,2", "--repeats", "5", "--input-tokens", "9", "--seed", "4", "--timeout", "2.5", "--model", "m"]
    found = answer("compare", *urls, "--interleaved", *load, home=home)
    assert (found["base"], found["runs"][0]["id"]) == (OLD, NEW)
    assert [wish.url for wish in asked] == list(urls)
    assert {(wish.concurrencies, wish.repeats, wish.workload.input_tokens) for wish in asked} == {((1, 2), 5, 9)}
    assert {(wish.seed, wish.request_timeout_s, wish.model) for wish in asked} == {(4, 2.5, "m")}


def test_a_comparison_that_is_stopped_shows_what_was_kept_and_ends_with_130(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(place: Home, wishes: Any, watcher: Any, *, command: str) -> list[Path]:
        watcher.began(place.path / "benchmarks" / OLD)
        raise BenchmarkStoppedError("the benchmark was stopped")

    monkeypatch.setattr("roundhouse.serve.benchmark.run.run_benchmarks", stop)
    words = ("compare", "http://one:1", "http://one:2", "--interleaved")
    assert OLD in bench(*words, home=home, code=130)
    assert [run["header"]["id"] for run in answer(*words, home=home, code=130)["runs"]] == [OLD]


def test_what_is_asked_belongs_to_what_is_measured(home: Path) -> None:
    with pytest.raises(UsageError, match="--repeats goes with --interleaved"):
        bench("compare", OLD, NEW, "--repeats", "5", home=home)


def test_a_check_fails_passes_or_cannot_tell_by_its_exit_code(home: Path) -> None:
    assert "regressed" in bench("check", NEW, "--baseline", OLD, home=home, code=1)
    assert answer("check", OLD, "--baseline", NEW, home=home)["verdict"] == "passed"
    stored(home, made_benchmark({1: [100.0]}, id_="c" * 12))
    assert answer("check", "c", "--baseline", OLD, home=home, code=4)["verdict"] == "undecided"
    speeds = {1: [100.0] * 4, 8: [400.0] * 4}
    stored(home, *(made_benchmark(speeds, id_=each * 12, prefill=[made_prefill()]) for each in "de"))
    in_part = bench("check", "d", "--baseline", "e", home=home, code=5)
    assert "passed in part" in in_part
    assert re.search(r"prefill tokens/s .* undecided", in_part)


def test_a_baseline_can_be_a_file(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    bench("export", OLD, "-o", str(file), home=home)
    assert "passed" in bench("check", OLD, "--baseline", str(file), home=home)
    bench("export", OLD, NEW, "-o", str(file), home=home)
    with pytest.raises(UsageError, match="holds 2 runs"):
        bench("check", OLD, "--baseline", str(file), home=home)


def test_what_is_exported_is_imported_elsewhere(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    file.write_text(bench("export", OLD, NEW, home=home))
    taken = answer("import", str(file), home=tmp_path / "other")
    assert [run["id"] for run in taken] == [OLD, NEW]
    assert {run["imported_from"] for run in answer("list", home=tmp_path / "other")["runs"]} == {"runs.json"}


def test_of_several_files_all_are_imported_or_none(home: Path, tmp_path: Path) -> None:
    good, bad, other = (tmp_path / name for name in ("good.json", "bad.json", "other"))
    bench("export", OLD, "-o", str(good), home=home)
    empty = '{"schema": "roundhouse.benchmarks/1", "runs": []}'
    for content, says in ((good.read_text()[:-9], "bad.json is not a file"), (empty, "holds no runs"), ("{}", "is no result")):
        bad.write_text(content)
        with pytest.raises(UsageError, match=says):
            bench("import", str(good), str(bad), home=other)
    bad.write_text(good.read_text())
    with pytest.raises(UsageError, match=f"run {OLD} is in .*good.json and in .*bad.json"):
        bench("import", str(good), str(bad), home=other)
    assert answer("list", home=other) == {"runs": [], "damaged": []}
    bench("export", NEW, "-o", str(bad), home=home)
    assert [run["id"] for run in answer("import", str(good), str(bad), home=other)] == [OLD, NEW]


def test_tables_go_to_standard_output(home: Path) -> None:
    lines = bench("export", OLD, "--format", "csv", home=home).splitlines()
    assert len(lines) == 1 + 6 + 6
    assert lines[0].startswith("schema_version,run,state,")


def test_removing_says_what_goes_and_deletes_the_folder(home: Path) -> None:
    refused = CliRunner().invoke(app_of(), ["remove", "aaa", "--home", str(home)], input="n\n")
    assert "smol, 128 in, 64 out, measured 2026-05-01 12:00; 0 raw files" in refused.output
    assert (home / "benchmarks" / OLD).is_dir()
    assert answer("remove", OLD, "--yes", home=home) == {"removed": [OLD]}
    assert not (home / "benchmarks" / OLD).exists()


def test_a_check_that_everything_would_pass_is_refused(home: Path) -> None:
    with pytest.raises(UsageError, match="--tolerance inf: nothing would be worse"):
        bench("check", NEW, "--baseline", OLD, "--tolerance", "inf", home=home)
    assert "Invalid value" in CliRunner().invoke(app_of(), ["check", NEW, "--baseline", OLD, "--tolerance", "nan"]).output


def test_an_export_that_cannot_be_written_is_said_and_leaves_what_was_there(home: Path, tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere" / "runs.json", tmp_path):
        with pytest.raises(UsageError, match=f"{place} cannot be written: "):
            bench("export", OLD, "-o", str(place), home=home)
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "runs.csv").write_text("before")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real" / "runs.csv")
    bench("export", OLD, "--format", "csv", "-o", str(tmp_path / "link.csv"), home=home)
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real" / "runs.csv").read_text().startswith("schema_version,")
    assert [each.name for each in (tmp_path / "real").iterdir()] == ["runs.csv"]
