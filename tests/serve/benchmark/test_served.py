"""A tiny engine behind a real Triton server, asked by the real aiperf."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from benchmarking import NotingWatcher

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home, default_home
from roundhouse.errors import SetupError
from roundhouse.serve.benchmark.aiperf.locate import find_aiperf
from roundhouse.serve.benchmark.points import LiveSample
from roundhouse.serve.benchmark.run import run_benchmarks
from roundhouse.serve.benchmark.store import SAMPLES, read_benchmark
from roundhouse.serve.benchmark.wish import BenchmarkWish
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.deployment import Deployment, Ports
from roundhouse.serve.history import read_lines
from roundhouse.serve.settings import Overrides

SMALL = Workload(input_tokens=24, output_tokens=12)


pytestmark = pytest.mark.timeout(900)
"""Each run of aiperf takes seconds to start, and much longer where other tests run beside it."""


@pytest.fixture(autouse=True)
def aiperf(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        found = find_aiperf(default_home())
    except SetupError as error:
        pytest.skip(error.message)
    monkeypatch.setenv("ROUNDHOUSE_AIPERF", str(found.executable))


def test_an_engine_is_served_measured_and_gone(tiny_engine: Engine, session_home: Home) -> None:
    before = {each.pid for each in psutil.Process().children(recursive=True)}
    wish = BenchmarkWish(
        engine=tiny_engine.manifest.id,
        workload=SMALL,
        concurrencies=(2,),
        repeats=1,
        prefill_lengths=(40,),
        overrides=Overrides(guard="tags", max_batch_size=4),
    )
    (folder,) = run_benchmarks(session_home, [wish], NotingWatcher(), command="bench")
    run = read_benchmark(folder)
    assert (run.state, run.header.driver) == ("finished", "aiperf")
    (point,) = run.points
    assert (point.completed, point.failed, point.tokens_from) == (8, {}, "usage")
    assert point.output_tokens == 8 * 12
    assert abs(point.input_tokens / 8 - 24) <= 1
    assert point.ttft is not None
    assert point.end_to_end is not None
    assert 0 < point.ttft.p50 <= point.end_to_end.p50
    assert point.engine is not None
    assert point.engine.prompt_tokens == point.input_tokens
    assert point.engine.tag_checks == point.engine.steps > 0
    assert point.engine.tag_mismatches == 0
    assert point.other_cores is not None
    (prefill,) = run.prefill
    assert (prefill.input_tokens, prefill.requests) == (40, 3)
    settings = run.header.subject.settings or {}
    assert (settings["max_batch_size"], settings["guard"]) == (4, "tags")
    assert point.engine.kv_pages == settings["kv"]["pages"]
    assert any(folder.joinpath("raw").iterdir())
    assert list(read_lines(folder, SAMPLES, LiveSample))
    left = [each for each in psutil.Process().children(recursive=True) if each.pid not in before]
    assert not [each for each in left if "triton" in each.name()]


def test_a_deployment_of_ours_is_measured_by_its_url(tiny_engine: Engine, session_home: Home, tmp_path: Path) -> None:
    overrides = Overrides(max_batch_size=4, kv_cache_tokens=640)
    ports = Ports(http=0, grpc=0, metrics=0, openai=0)
    with Deployment([tiny_engine], session_home, ports=ports, overrides=overrides) as deployment:
        at = deployment.endpoints
        wish = BenchmarkWish(
            engine=tiny_engine.manifest.id,
            url=at.openai,
            metrics=at.metrics,
            overrides=overrides,
            workload=SMALL,
            concurrencies=(1,),
            repeats=1,
        )
        (folder,) = run_benchmarks(session_home, [wish], NotingWatcher(), command="bench")
        run = read_benchmark(folder)
    (point,) = run.points
    assert point.completed == 8
    assert point.engine is not None
    assert point.engine.kv_pages == 40
    assert point.other_cores is not None
    subject = run.header.subject
    assert (subject.kind, subject.url, subject.engine_id) == ("engine", at.openai, tiny_engine.manifest.id)
    assert subject.settings is not None, "its pool is as large as the overrides say"
