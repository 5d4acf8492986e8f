"""The bare loop of a real engine, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from benchmarking import NotingWatcher

from roundhouse.build.engine import Engine
from roundhouse.build.hardware import this_machine
from roundhouse.build.home import Home
from roundhouse.errors import BenchmarkStoppedError, ServeError, UsageError
from roundhouse.serve.benchmark.conversations import content_hash
from roundhouse.serve.benchmark.counts import engine_counts
from roundhouse.serve.benchmark.driver import PointWish
from roundhouse.serve.benchmark.fitting import remarks
from roundhouse.serve.benchmark.loop_driver import LoopDriver
from roundhouse.serve.benchmark.records import Driver
from roundhouse.serve.benchmark.run import run_benchmarks
from roundhouse.serve.benchmark.store import read_benchmark
from roundhouse.serve.benchmark.wish import BenchmarkWish
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.last_words import failure_line
from roundhouse.serve.settings import EngineSettings, Overrides

SMALL = Workload(input_tokens=20, output_tokens=6)


def settings_of(engine: Engine, **overrides: object) -> EngineSettings:
    chosen = Overrides.model_validate(overrides)
    return EngineSettings.for_engine(engine, chosen, free_memory=this_machine().free_memory)


def point(workload: Workload = SMALL, concurrency: int = 3, requests: int = 7, seed: int = 1) -> PointWish:
    return PointWish(workload, concurrency, requests, seed, timeout_s=60)


@pytest.fixture(scope="module")
def driver(tiny_engine: Engine) -> Iterator[LoopDriver]:
    with LoopDriver(tiny_engine, settings_of(tiny_engine)) as loaded:
        yield loaded


def test_every_request_is_measured_and_the_engine_tells_what_it_counted(driver: LoopDriver) -> None:
    driver.take()
    measured = driver.measure(point(), threading.Event())
    assert measured.tokens_from == "engine"
    assert [each.outcome for each in measured.requests] == ["completed"] * 7
    assert {(each.input_tokens, each.output_tokens) for each in measured.requests} == {(20, 6)}
    ((name, path),) = measured.files
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert name == "requests.jsonl"
    assert [(each["outcome"], each["ended"], each["output_tokens"]) for each in lines] == [
        (each.outcome, each.ended, each.output_tokens) for each in measured.requests
    ]
    counts = engine_counts(driver.take())
    assert counts is not None
    assert (counts.prompt_tokens, counts.running_most, counts.tag_mismatches) == (140, 3, 0)
    assert counts.kv_pages_used_most > 0
    assert counts.steps == counts.tag_checks >= 6


def test_beginnings_that_are_shared_are_computed_once(driver: LoopDriver) -> None:
    driver.take()
    shared = Workload(input_tokens=60, output_tokens=2, prefix_tokens=48)
    driver.measure(point(shared, concurrency=1, requests=4, seed=5), threading.Event())
    counts = engine_counts(driver.take())
    assert counts is not None
    assert counts.cached_tokens == 3 * 48


def test_a_point_that_is_stopped_leaves_the_engine_usable(driver: LoopDriver) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(BenchmarkStoppedError):
        driver.measure(point(Workload(input_tokens=20, output_tokens=200), requests=500), stop)
    assert len(driver.measure(point(seed=2), threading.Event()).requests) == 7


def test_cancelled_requests_are_counted_apart(driver: LoopDriver) -> None:
    workload = Workload(input_tokens=20, output_tokens=200, cancel_share=0.5, cancel_after_s=0.001)
    measured = driver.measure(point(workload, concurrency=2, requests=4), threading.Event())
    assert sorted(each.outcome for each in measured.requests) == ["cancelled", "cancelled", "completed", "completed"]


def test_conversations_go_through_the_chat_template(driver: LoopDriver, tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text(
        '{"prompt": "hello"}\n' + json.dumps({"messages": [{"role": "user", "content": "the engine " * 20}]}) + "\n"
    )
    workload = Workload(kind="conversations", output_tokens=3, file=str(file), file_sha256=content_hash(file))
    measured = driver.measure(point(workload, concurrency=2, requests=4), threading.Event())
    lengths = [each.input_tokens for each in measured.requests]
    assert len(set(lengths)) == 2
    assert sorted(lengths)[0] == sorted(lengths)[1]


def test_a_process_that_dies_is_said_with_its_last_words(tiny_engine: Engine) -> None:
    before = set(psutil.pids())  # children that others left, as zombies too, are none of it
    with LoopDriver(tiny_engine, settings_of(tiny_engine)) as driver:
        new = [each for each in psutil.Process().children() if each.pid not in before]
        (child,) = (each for each in new if "loop_process" in " ".join(each.cmdline()))
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(ServeError, match="the engine's process ended"):
            driver.measure(point(), threading.Event())


def test_one_that_is_killed_in_the_middle_of_a_message_is_not_waited_for(tiny_engine: Engine) -> None:
    driver = LoopDriver(tiny_engine, settings_of(tiny_engine))
    driver._command = [sys.executable, "-c", """print('{"type":"ready"}'); print('{"type":"done","requ', end="")"""]
    with driver, pytest.raises(ServeError, match="the engine's process ended"):
        driver.measure(point(), threading.Event())


def test_a_rank_that_could_not_start_is_told_and_not_what_its_launcher_says_of_it(tiny_engine: Engine) -> None:
    driver = LoopDriver(tiny_engine, settings_of(tiny_engine))
    said = failure_line(ServeError("rank 1 has no GPU"))
    driver._command = [sys.executable, "-c", f"import sys; sys.stderr.write({said!r} + 'mpirun detected an error\\n')"]
    with pytest.raises(ServeError, match=r"the engine's process ended: rank 1 has no GPU$"), driver:
        pass


def test_an_engine_that_cannot_be_loaded_says_why(tiny_engine: Engine, tmp_path: Path) -> None:
    nowhere = Engine(tmp_path / "gone", tiny_engine.manifest)
    with pytest.raises(ServeError, match="is not an engine"), LoopDriver(nowhere, settings_of(tiny_engine)):
        pass


def test_a_whole_benchmark_of_the_loop(tiny_engine: Engine, tmp_path: Path) -> None:
    wish = BenchmarkWish(
        engine=str(tiny_engine.folder),
        driver="loop",
        workload=SMALL,
        concurrencies=(1, 16),
        repeats=2,
        prefill_lengths=(40,),
    )
    watcher = NotingWatcher()
    twice = [wish, wish.model_copy(update={"overrides": Overrides(guard="off")})]
    folders = run_benchmarks(Home(tmp_path), twice, watcher, command="bench")
    on, off = map(read_benchmark, folders)
    assert (on.state, off.state) == ("finished", "finished")
    for run in (on, off):
        assert [(each.concurrency, each.repeat, each.completed) for each in run.points] == [
            (concurrency, repeat, SMALL.requests(concurrency)) for repeat in (0, 1) for concurrency in (1, 16)
        ]
        assert [each.requests for each in run.prefill] == [3, 3]
        assert [(each.measured_tokens, each.failed) for each in run.prefill] == [(40, {}), (40, {})]
        assert all(each.engine is not None and each.engine.prompt_tokens == 120 for each in run.prefill)
        assert all(each.other_cores is not None for each in run.points)
        assert run.header.subject.engine_id == tiny_engine.manifest.id
        assert run.header.subject.url is None
        assert run.header.environment.hardware is not None
        assert {"roundhouse", "torch"} <= set(run.header.environment.versions)
    kept = sorted(path.name for path in (folders[0] / "raw").iterdir())
    points = [f"c{concurrency}-r{repeat}" for concurrency in (1, 16) for repeat in (0, 1)]
    assert kept == [f"{point}-requests.jsonl.gz" for point in (*points, "prefill40-r0", "prefill40-r1")]
    guards = [(run.header.subject.settings or {})["guard"] for run in (on, off)]
    assert guards == ["tags", "off"]
    checked = [sum(each.engine.tag_checks for each in run.points if each.engine) for run in (on, off)]
    assert checked[0] > 0 == checked[1]
    assert any("llama (guard=off), 1 at once" in line or "(guard=off), 1 at once" in line for line in watcher.lines)
    assert any("runs 8 requests at once (max_batch_size)" in line for line in watcher.lines)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"workload": Workload(input_tokens=250, output_tokens=7)}, "do not fit .*: its longest request has 256"),
        ({"prefill_lengths": (16, 256)}, "prompts of 256 tokens with one of answer do not fit"),
        ({"overrides": Overrides(kv_cache_tokens=16)}, "its KV cache has room for 16"),
        ({"overrides": Overrides(max_seq_len=4096)}, "above the model's"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_begins(
    tiny_engine: Engine, tmp_path: Path, changes: dict[str, object], says: str
) -> None:
    wish = BenchmarkWish.model_validate(
        {"engine": str(tiny_engine.folder), "driver": "loop", "workload": SMALL, "concurrencies": (1,), **changes}
    )
    with pytest.raises(UsageError, match=says):
        run_benchmarks(Home(tmp_path), [wish], NotingWatcher(), command="bench")
    assert not list(tmp_path.iterdir())


def test_lengths_that_may_be_drawn_beyond_the_longest_request_are_said(tiny_engine: Engine) -> None:
    settings = settings_of(tiny_engine)  # 256 tokens at most

    def said(driver: Driver, **workload: int) -> list[str]:
        wish = BenchmarkWish(engine="x", driver=driver, workload=Workload(**workload), concurrencies=(1,))
        return [line for line in remarks(tiny_engine, settings, wish) if "may be drawn" in line]

    (bare,) = said("loop", input_tokens=200, output_tokens=20, input_spread=20)
    assert bare.endswith("takes requests of 256 tokens: longer ones, which may be drawn, are cut to it.")
    (served,) = said("aiperf", input_tokens=200, output_tokens=20, output_spread=20)
    assert served.endswith("may be drawn, fail.")
    assert said("loop", input_tokens=100, output_tokens=20, input_spread=20) == []
    assert said("loop", input_tokens=236, output_tokens=20) == []


def test_few_pages_are_said_and_make_requests_wait(tiny_engine: Engine, tmp_path: Path) -> None:
    wish = BenchmarkWish(
        engine=str(tiny_engine.folder),
        driver="loop",
        workload=SMALL,
        concurrencies=(8,),
        repeats=1,
        overrides=Overrides(kv_cache_tokens=64, page_tokens=16),
    )
    watcher = NotingWatcher()
    (folder,) = run_benchmarks(Home(tmp_path), [wish], watcher, command="bench")
    (measured,) = read_benchmark(folder).points
    assert any("has KV pages for 2 such requests at once" in line for line in watcher.lines)
    assert measured.engine is not None
    assert measured.engine.kv_pages == 4
    assert measured.engine.waiting_most > 0
    assert measured.completed == 32
