"""What is recorded of where a benchmark ran: never more than is known of whom it measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarking import NotingWatcher, ScriptedDriver

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.serve.benchmark.run import run_benchmarks
from roundhouse.serve.benchmark.store import read_benchmark
from roundhouse.serve.benchmark.subjects import PreparedSubject
from roundhouse.serve.benchmark.wish import BenchmarkWish
from roundhouse.serve.benchmark.workload import Workload

HERE = "http://127.0.0.1:9/v1"


def recorded(home: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine | None) -> Any:
    """The header of a run against a server on this machine."""
    wish = BenchmarkWish(
        url=HERE, server="vLLM", workload=Workload(input_tokens=16, output_tokens=8), concurrencies=(1,), repeats=1
    )
    prepared = PreparedSubject(Home(home), wish, engine, url=HERE, model="m")
    monkeypatch.setattr("roundhouse.serve.benchmark.run.prepare_subjects", lambda home, wishes: [prepared])
    monkeypatch.setattr("roundhouse.serve.benchmark.aiperf.driver.AiperfDriver", lambda home, **about: Entered("a", []))
    (folder,) = run_benchmarks(Home(home), [wish], NotingWatcher(), command="bench")
    return read_benchmark(folder).header


class Entered(ScriptedDriver):
    """A scripted driver that owns nothing."""

    def __enter__(self) -> Entered:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_a_foreign_server_on_this_machine_is_not_taken_for_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = recorded(tmp_path, monkeypatch, None)
    assert header.environment.hardware is None
    assert "torch" not in header.environment.versions
    assert header.ran_on == "vLLM"


def test_a_server_that_is_said_to_be_ours_is_believed_when_its_metrics_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_engine: Engine
) -> None:
    header = recorded(tmp_path, monkeypatch, tiny_engine)
    assert (header.subject.kind, header.subject.settings, header.environment.hardware) == ("engine", None, None)
