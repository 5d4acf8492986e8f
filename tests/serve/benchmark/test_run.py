"""In which order a benchmark measures, and what becomes of its records however it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarking import NotingWatcher, ScriptedDriver, answered, scripted_subject

from roundhouse.build.home import Home
from roundhouse.errors import BenchmarkStoppedError, ServeError, UsageError
from roundhouse.serve.benchmark import run as room
from roundhouse.serve.benchmark.driver import Measured, PointWish
from roundhouse.serve.benchmark.measuring import MeasuredRequest
from roundhouse.serve.benchmark.run import run_benchmarks
from roundhouse.serve.benchmark.store import BenchmarkStore, read_benchmark
from roundhouse.serve.benchmark.subjects import OpenSubject
from roundhouse.serve.benchmark.wish import BenchmarkWish
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.history import RecordWriter

SMALL = Workload(input_tokens=16, output_tokens=8)
Asked = list[tuple[str, PointWish]]


class Prepared:
    """Stands for a subject that was looked at."""

    remarks: tuple[str, ...] = ("by the way",)

    def __init__(self, subject: OpenSubject) -> None:
        self.name = subject.subject.name
        self._subject = subject

    @contextlib.contextmanager
    def opened(self, *_: object) -> Iterator[OpenSubject]:
        yield self._subject


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[OpenSubject]], None]:
    """Let wishes be about these subjects."""

    def use(subjects: Sequence[OpenSubject]) -> None:
        monkeypatch.setattr(room, "prepare_subjects", lambda home, wishes: [Prepared(each) for each in subjects])

    return use


def wish(**changes: Any) -> BenchmarkWish:
    fields: dict[str, Any] = {"url": "http://127.0.0.1:1", "workload": SMALL, "concurrencies": (1, 4), "repeats": 2, "seed": 7}
    return BenchmarkWish.model_validate({**fields, **changes})


def test_several_are_measured_by_turns_with_the_same_prompts(tmp_path: Path, scripted: Any) -> None:
    asked: Asked = []
    scripted([scripted_subject(name, ScriptedDriver(name, asked)) for name in "ab"])
    watcher = NotingWatcher()
    wishes = [wish(prefill_lengths=(32,)), wish(prefill_lengths=(32,))]
    folders = run_benchmarks(Home(tmp_path), wishes, watcher, command="bench a b")
    told = [(name, each.concurrency, each.workload.name) for name, each in asked]
    first_turn, second_turn = (
        [(name, at, kind) for at, kind in ((1, "fixed"), (4, "fixed"), (1, "prefill")) for name in order]
        for order in ("ab", "ba")
    )
    assert told == [("a", 4, "fixed"), ("b", 4, "fixed"), *first_turn, *second_turn], "nobody is always the second"
    seeds = [each.seed for _, each in asked]
    assert seeds[::2] == seeds[1::2], "each pair asks the same"
    assert len(set(seeds)) == len(seeds) // 2, "and no point what another did"
    first, second = map(read_benchmark, folders)
    assert first.header.session == second.header.session is not None
    assert [first.state, second.state] == ["finished", "finished"]
    assert [(point.concurrency, point.repeat) for point in first.points] == [(1, 0), (4, 0), (1, 1), (4, 1)]
    assert [(point.input_tokens, point.repeat) for point in second.prefill] == [(32, 0), (32, 1)]
    assert watcher.folders == folders
    assert watcher.fractions[-1] == 1.0
    assert watcher.lines.count("by the way") == 2


def test_the_warm_up_is_short_and_in_no_point(tmp_path: Path, scripted: Any) -> None:
    asked: Asked = []
    scripted([scripted_subject("a", ScriptedDriver("a", asked))])
    (folder,) = run_benchmarks(Home(tmp_path), [wish(repeats=1)], NotingWatcher(), command="bench a")
    run = read_benchmark(folder)
    assert asked[0][1].workload.output_tokens < SMALL.output_tokens
    assert sum(point.completed for point in run.points) == sum(each.requests for _, each in asked[1:])
    assert run.header.session is None
    assert run.header.command == "bench a"


def test_what_is_wished_for_less_often_is_measured_less_often(tmp_path: Path, scripted: Any) -> None:
    asked: Asked = []
    scripted([scripted_subject(name, ScriptedDriver(name, asked)) for name in "ab"])
    wishes = [wish(repeats=1, concurrencies=(2,)), wish(repeats=2, concurrencies=(1, 2))]
    folders = run_benchmarks(Home(tmp_path), wishes, NotingWatcher(), command="bench")
    points = [[(point.concurrency, point.repeat) for point in read_benchmark(folder).points] for folder in folders]
    assert points == [[(2, 0)], [(2, 0), (1, 0), (2, 1), (1, 1)]]


def failing_at(concurrency: int, error: BaseException) -> Callable[[PointWish], None]:
    seen = []

    def before(each: PointWish) -> None:
        seen.append(each.concurrency)
        if seen.count(concurrency) > 1:  # the warm-up is the first
            raise error

    return before


def test_what_was_measured_before_a_failure_stays(tmp_path: Path, scripted: Any) -> None:
    broken = failing_at(4, ServeError("aiperf fell over"))
    scripted([scripted_subject("a", ScriptedDriver("a", [], broken)), scripted_subject("b", ScriptedDriver("b", []))])
    watcher = NotingWatcher()
    with pytest.raises(ServeError, match="aiperf fell over"):
        run_benchmarks(Home(tmp_path), [wish(), wish()], watcher, command="bench")
    failed, other = map(read_benchmark, watcher.folders)
    assert (failed.state, failed.problem) == ("failed", "aiperf fell over")
    assert other.state == "failed"
    assert other.problem is not None
    assert "a, which failed" in other.problem
    assert [point.concurrency for point in failed.points] == [point.concurrency for point in other.points] == [1]


@pytest.mark.parametrize("failing", [False, True])
def test_an_end_that_cannot_be_written_keeps_no_other_run_from_its_own(
    tmp_path: Path, scripted: Any, monkeypatch: pytest.MonkeyPatch, failing: bool
) -> None:
    before = failing_at(4, ServeError("aiperf fell over")) if failing else lambda wish: None
    scripted([scripted_subject("a", ScriptedDriver("a", [], before)), scripted_subject("b", ScriptedDriver("b", []))])
    ended: list[Path] = []
    end = RecordWriter.end

    def breaking(writer: RecordWriter, *words: Any, **more: Any) -> None:
        ended.append(writer.folder)
        if len(ended) == 1:
            raise ServeError("the disk is full")
        end(writer, *words, **more)

    monkeypatch.setattr(RecordWriter, "end", breaking)
    watcher = NotingWatcher()
    with pytest.raises(ServeError, match="aiperf fell over" if failing else "the disk is full"):
        run_benchmarks(Home(tmp_path), [wish(), wish()], watcher, command="bench")
    assert ended == watcher.folders
    assert [read_benchmark(folder).state for folder in watcher.folders] == [
        "interrupted",
        "failed" if failing else "finished",
    ]


def test_a_prompt_length_that_nobody_answers_is_a_point_that_says_why(tmp_path: Path, scripted: Any) -> None:
    driver = ScriptedDriver("a", [])
    usual = driver.measure

    def measure(wish: PointWish, stop: Any) -> Measured:
        refused = [MeasuredRequest("failed", 0.0, 1.0, error="http 413")] * wish.requests
        return Measured(refused, "usage") if wish.workload.name == "prefill" else usual(wish, stop)

    driver.measure = measure  # type: ignore[method-assign]
    scripted([scripted_subject("a", driver)])
    watcher = NotingWatcher()
    (folder,) = run_benchmarks(Home(tmp_path), [wish(repeats=1, prefill_lengths=(32,))], watcher, command="bench")
    (point,) = read_benchmark(folder).prefill
    assert (point.requests, point.ttft, point.tokens_per_s, point.failed) == (0, None, None, {"http 413": 3})
    assert any("no prompt was answered, failed: 3× http 413" in line for line in watcher.lines)


def test_a_server_that_ended_by_itself_fails_the_run_after_its_point(tmp_path: Path, scripted: Any) -> None:
    def ended() -> None:
        raise ServeError("Triton ended with code 1")

    scripted([scripted_subject("a", ScriptedDriver("a", []), ended)])
    watcher = NotingWatcher()
    with pytest.raises(ServeError, match="Triton ended"):
        run_benchmarks(Home(tmp_path), [wish()], watcher, command="bench")
    run = read_benchmark(watcher.folders[0])
    assert (run.state, len(run.points)) == ("failed", 1)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BenchmarkStoppedError("the benchmark was stopped")])
def test_stopped_in_a_point_it_is_cancelled_and_keeps_the_ones_before(
    tmp_path: Path, scripted: Any, error: BaseException
) -> None:
    scripted([scripted_subject("a", ScriptedDriver("a", [], failing_at(4, error)))])
    watcher = NotingWatcher()
    with pytest.raises(type(error)):
        run_benchmarks(Home(tmp_path), [wish()], watcher, command="bench")
    run = read_benchmark(watcher.folders[0])
    assert (run.state, [point.concurrency for point in run.points]) == ("cancelled", [1])


def test_stopped_between_points_it_measures_no_more(tmp_path: Path, scripted: Any) -> None:
    asked: Asked = []
    scripted([scripted_subject("a", ScriptedDriver("a", asked))])
    watcher = NotingWatcher(stop_at="1 at once, repeat 2")
    with pytest.raises(BenchmarkStoppedError):
        run_benchmarks(Home(tmp_path), [wish()], watcher, command="bench")
    assert read_benchmark(watcher.folders[0]).state == "cancelled"
    assert len(read_benchmark(watcher.folders[0]).points) == 3


def test_a_warm_up_that_nobody_answers_says_why(tmp_path: Path, scripted: Any) -> None:
    driver = ScriptedDriver("a", [])
    failed = [MeasuredRequest("failed", 0.0, 1.0, error="HTTP 404")] * 4
    driver.measure = lambda wish, stop: Measured(failed, "usage")  # type: ignore[method-assign]
    scripted([scripted_subject("a", driver)])
    watcher = NotingWatcher()
    with pytest.raises(ServeError, match="a answered no request of the warm-up: 4× HTTP 404"):
        run_benchmarks(Home(tmp_path), [wish()], watcher, command="bench")
    assert read_benchmark(watcher.folders[0]).state == "failed"


def test_failures_are_a_result_and_in_no_percentile(tmp_path: Path, scripted: Any) -> None:
    driver = ScriptedDriver("a", [])
    seen = [*answered(3), MeasuredRequest("failed", 0.0, 900.0, error="timeout"), MeasuredRequest("cancelled", 0.0, 1.0)]
    driver.measure = lambda wish, stop: Measured(seen, "usage")  # type: ignore[method-assign]
    scripted([scripted_subject("a", driver)])
    watcher = NotingWatcher()
    (folder,) = run_benchmarks(Home(tmp_path), [wish(repeats=1, concurrencies=(4,))], watcher, command="bench")
    (point,) = read_benchmark(folder).points
    assert (point.completed, point.failed, point.cancelled) == (3, {"timeout": 1}, 1)
    assert point.end_to_end is not None
    assert point.end_to_end.count == 3
    assert point.end_to_end.p99 < 1
    assert any("failed: 1× timeout" in line and "1 cancelled" in line for line in watcher.lines)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"url": None}, "there is nothing to measure"),
        ({"url": None, "engine": "nobody"}, "no engine is called 'nobody'"),
        ({"url": "127.0.0.1:9"}, "is no URL of an endpoint"),
        ({"url": "http://me:secret@host/v1"}, "a user, a password or a query"),
        ({"url": "http://127.0.0.1:9", "driver": "loop"}, "has no bare loop"),
        ({"driver": "vllm"}, "vllm is not driven from here"),
        ({"api_key_variable": "ROUNDHOUSE_NO_SUCH_KEY"}, "ROUNDHOUSE_NO_SUCH_KEY is not set"),
    ],
)
def test_what_cannot_be_leaves_nothing_behind(tmp_path: Path, monkeypatch: Any, changes: dict[str, Any], says: str) -> None:
    monkeypatch.setattr("roundhouse.serve.benchmark.aiperf.locate.find_aiperf", lambda home: None)
    with pytest.raises(UsageError, match=says):
        run_benchmarks(Home(tmp_path), [wish(**changes)], NotingWatcher(), command="bench")
    assert list(BenchmarkStore(Home(tmp_path))) == []
    assert not list(tmp_path.iterdir())


def test_no_wish_is_no_benchmark(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to measure"):
        run_benchmarks(Home(tmp_path), [], NotingWatcher(), command="bench")
