"""Benchmarks in processes of their own: killed in the middle, stopped by a signal, two at a time in one home."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from benchmarking import NotingWatcher

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.serve.benchmark.run import run_benchmarks
from roundhouse.serve.benchmark.store import BenchmarkStore, read_benchmark
from roundhouse.serve.benchmark.wish import BenchmarkWish
from roundhouse.serve.benchmark.workload import Workload


def start(engine: Engine, home: Path) -> subprocess.Popen[bytes]:
    """A benchmark that would take very long."""
    options = ["--bare", "--concurrency", "1,2", "--repeats", "100", "--input-tokens", "16", "--output-tokens", "32"]
    command = [sys.executable, "-m", "roundhouse", "bench", str(engine.folder), *options, "--home", str(home)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


def lines_of(home: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in home.glob("benchmarks/*/points.jsonl"))


def test_killed_it_is_interrupted_with_what_was_measured_and_leaves_no_process(tiny_engine: Engine, tmp_path: Path) -> None:
    with start(tiny_engine, tmp_path) as process:
        until(lambda: lines_of(tmp_path) >= 3 or process.poll() is not None)
        family = psutil.Process(process.pid).children(recursive=True)
        assert family, "the engine is in a process of its own"
        (running,) = BenchmarkStore(Home(tmp_path))
        assert running.state == "running"
        # Meanwhile another process measures in the same home.
        wish = BenchmarkWish(
            engine=str(tiny_engine.folder),
            driver="loop",
            workload=Workload(input_tokens=16, output_tokens=4),
            concurrencies=(1, 2),
            repeats=2,
        )
        (other,) = run_benchmarks(Home(tmp_path), [wish], NotingWatcher(), command="bench")
        os.kill(process.pid, signal.SIGKILL)
    store = BenchmarkStore(Home(tmp_path))
    killed = store.open(running.id)
    assert (killed.state, killed.ended_at) == ("interrupted", None)
    assert len(killed.points) >= 3
    assert [(point.concurrency, point.repeat) for point in killed.points[:3]] == [(1, 0), (2, 0), (1, 1)]
    beside = read_benchmark(other)
    assert (beside.state, len(beside.points)) == ("finished", 4)
    assert {run.id for run in store} == {killed.id, beside.id}
    psutil.wait_procs(family, timeout=60)
    assert not any(each.is_running() for each in family), "the engine's process ends with who started it"


def test_ctrl_c_cancels_it_and_ends_with_130(tiny_engine: Engine, tmp_path: Path) -> None:
    with start(tiny_engine, tmp_path) as process:
        until(lambda: lines_of(tmp_path) >= 1 or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
    (run,) = BenchmarkStore(Home(tmp_path))
    assert run.state == "cancelled"
    assert run.points
