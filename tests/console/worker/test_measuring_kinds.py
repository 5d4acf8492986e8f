"""What jobs do that measure: the record is known at once, what was measured stays, and keys are seen by nobody."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from built import ID, add_built
from deployed import add_deployment
from desk import HOST, Desk
from measured import benchmark_content, evaluation_content, write_benchmark, write_evaluation
from sqlalchemy import select

from roundhouse.build.home import Home
from roundhouse.console.access.actor import Actor
from roundhouse.console.access.sealing import Sealer
from roundhouse.console.benchmarks.actions import ask_benchmark
from roundhouse.console.benchmarks.requests import KEY_VARIABLE, BenchmarkRequest
from roundhouse.console.jobs.queries import job_detail
from roundhouse.console.models import AuditEntry, BenchmarkRun, EvaluationRun, Job
from roundhouse.console.worker.kinds import run_kind
from roundhouse.console.worker.task import Task, TaskFailedError
from roundhouse.console.worker.wire import StageBegan
from roundhouse.errors import BenchmarkStoppedError, ServeError, SetupError, UsageError
from roundhouse.serve.accuracy import run as accuracy
from roundhouse.serve.accuracy.wish import EvaluationWish
from roundhouse.serve.benchmark import run as benchmark
from roundhouse.serve.benchmark.wish import BenchmarkWish
from roundhouse.serve.measurement.watcher import Watcher

WISH = {"wish": BenchmarkWish(url="http://127.0.0.1:1", model="m").model_dump(mode="json"), "deployment_id": None}
ANN = Actor(1, "ann", "operator", "browser", "x")
SECRET = "sk-very-secret-0123456789"


class Measures:
    """Stands for what measures: writes a run down in halves, and ends as it is told to."""

    def __init__(self, desk: Desk, error: Exception | None = None) -> None:
        self.desk = desk
        self.error = error
        self.states: list[tuple[str, int | None, int]] = []
        self.wishes: list[BenchmarkWish] = []
        self.key: str | None = None
        self.command = ""

    def __call__(self, home: Home, wishes: Sequence[BenchmarkWish], watcher: Watcher, *, command: str) -> list[Path]:
        self.wishes, self.command = list(wishes), command
        self.key = os.environ.get(KEY_VARIABLE)
        watcher.stage("start", "starting it")
        writer = write_benchmark(home, benchmark_content(0, part=0.5))
        try:
            watcher.began(writer.folder)
            self._look()
            watcher.progress(0.5)
            watcher.say("half of it")
            if self.error is not None:
                raise self.error
            writer.end("finished")
            return [writer.folder]
        except BenchmarkStoppedError:
            writer.end("cancelled")
            raise
        except ServeError as error:
            writer.end("failed", error.message)
            raise
        finally:
            writer.close()

    def _look(self) -> None:
        with self.desk.database.reading() as session:
            row = session.scalars(select(BenchmarkRun)).one()
            self.states.append((row.state, row.job_id, row.points))


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "x")  # put back at the end, whatever jobs make of it
    monkeypatch.delenv(KEY_VARIABLE)


@pytest.fixture
def measures(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Measures:
    made = Measures(desk)
    monkeypatch.setattr(benchmark, "run_benchmarks", made)
    return made


def done(task: Task) -> dict[str, Any]:
    try:
        return run_kind(task)
    finally:
        task.close()


def the_run(desk: Desk) -> BenchmarkRun:
    with desk.database.reading() as session:
        return session.scalars(select(BenchmarkRun)).one()


def test_a_run_is_known_with_its_job_from_its_first_moment(desk: Desk, measures: Measures) -> None:
    task = desk.task("benchmark", **WISH)
    result = done(task)
    row = the_run(desk)
    assert measures.states == [("running", task.claim.job_id, 6)]
    assert (result, row.state, row.job_id, row.host) == ({"benchmark_id": row.id}, "finished", task.claim.job_id, HOST)
    assert desk.lines == ["half of it"]
    assert [each.name for each in desk.events if isinstance(each, StageBegan)] == ["start"]
    assert measures.command.startswith("roundhouse bench http://127.0.0.1:1")


@pytest.mark.parametrize("subject", ["engine_id", "deployment_id", "url"])
def test_without_a_seed_each_attempt_draws_one_unless_the_engine_is_started_for_it(
    desk: Desk, measures: Measures, subject: str
) -> None:
    of_it = {"engine_id": ID, "deployment_id": "aaaaaaaa", "url": "http://127.0.0.1:1"}[subject]
    with desk.database.writing() as session:
        add_built(session)
        place = {"host": HOST, "home": str(desk.home.path)}
        add_deployment(session, "aaaaaaaa", engine_id=ID, openai="http://127.0.0.1:9000/v1", **place)
        asked, named = (
            ask_benchmark(session, ANN, BenchmarkRequest.model_validate({subject: of_it, "seed": seed}), Sealer.of(desk.home))
            for seed in (None, 7)
        )
        payloads = [asked.payload, named.payload]
    drawn, told = ({BenchmarkWish.model_validate(each["wish"]).seed for _ in range(5)} for each in payloads)
    assert told == {7}
    assert drawn == {0} if subject == "engine_id" else len(drawn) == 5


def test_what_fails_after_it_has_begun_keeps_its_points_and_names_the_run(desk: Desk, measures: Measures) -> None:
    measures.error = ServeError("the endpoint went away", hint="Look there.")
    with pytest.raises(TaskFailedError, match="went away") as failed:
        done(desk.task("benchmark", **WISH))
    row = the_run(desk)
    assert (failed.value.result, failed.value.hint) == ({"benchmark_id": row.id}, "Look there.")
    assert (row.state, row.points, row.problem) == ("failed", 6, "the endpoint went away")


def test_what_is_cancelled_keeps_its_points(desk: Desk, measures: Measures) -> None:
    task = desk.task("benchmark", **WISH)

    class Stops(Measures):
        def _look(self) -> None:
            task.stopping.set()

    measures.__class__ = Stops
    with pytest.raises(BenchmarkStoppedError):
        done(task)
    row = the_run(desk)
    assert (row.state, row.points, row.problem) == ("cancelled", 6, None)


def test_what_cannot_begin_fails_with_its_own_words(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks_aiperf(*_: Any, **__: Any) -> list[Path]:
        raise SetupError("aiperf is not installed", hint="`roundhouse bench setup` installs it.")

    monkeypatch.setattr(benchmark, "run_benchmarks", lacks_aiperf)
    with pytest.raises(SetupError, match="aiperf is not installed"):
        done(desk.task("benchmark", **WISH))
    outside = {**WISH["wish"], "tokenizer": "/etc"}  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="not in a folder that may be read here"):
        done(desk.task("benchmark", wish=outside, deployment_id=None))


def test_an_endpoints_key_reaches_what_measures_and_nobody_else(desk: Desk, measures: Measures) -> None:
    sealer = Sealer.of(desk.home)
    wanted = BenchmarkRequest.model_validate({"url": "http://127.0.0.1:1", "model": "m", "api_key": SECRET, "repeats": 1})
    with desk.database.writing() as session:
        job = ask_benchmark(session, ANN, wanted, sealer, key="k").id
        assert ask_benchmark(session, ANN, wanted, sealer, key="k").id == job
        with pytest.raises(UsageError, match="another request"):
            ask_benchmark(session, ANN, wanted.model_copy(update={"repeats": 2}), sealer, key="k")
    done(desk.next_task())
    assert (measures.key, measures.wishes[0].api_key_variable) == (SECRET, KEY_VARIABLE)
    with desk.database.reading() as session:
        row = session.get_one(Job, job)
        told = [job_detail(session, job).model_dump_json(), json.dumps(row.payload), str(row.sealed)]
        told += [json.dumps(entry.detail) for entry in session.scalars(select(AuditEntry))]
    told += [*desk.lines, json.dumps(the_run(desk).header), measures.command]
    assert not [each for each in told if SECRET in each]


def test_a_deployments_key_is_read_where_it_is_kept(desk: Desk, measures: Measures) -> None:
    with desk.database.writing() as session:
        add_built(session)
        add_deployment(
            session, "aaaaaaaa", engine_id=ID, key=SECRET, key_home=desk.home, host=HOST, home=str(desk.home.path),
            openai="http://127.0.0.1:9000/v1",
        )  # fmt: skip
        wanted = BenchmarkRequest(deployment_id="aaaaaaaa")
        job = ask_benchmark(session, ANN, wanted, Sealer.of(desk.home))
        assert (job.sealed, job.engine_id, job.deployment_id) == (None, ID, None)
    done(desk.next_task())
    (wish,) = measures.wishes
    assert (measures.key, wish.url, wish.engine) == (SECRET, "http://127.0.0.1:9000/v1", ID)


def test_an_evaluation_tells_of_its_gate(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(home: Home, wish: EvaluationWish, watcher: Watcher, *, command: str) -> Path:
        with write_evaluation(home, evaluation_content(1, gate="failed")) as writer:
            watcher.began(writer.folder)
        return writer.folder

    monkeypatch.setattr(accuracy, "evaluate", evaluate)
    wish = EvaluationWish(url="http://127.0.0.1:1").model_dump(mode="json")
    task = desk.task("evaluate", wish=wish, deployment_id=None)
    result = done(task)
    with desk.database.reading() as session:
        row = session.scalars(select(EvaluationRun)).one()
    assert result == {"evaluation_id": row.id, "gate": "failed"}
    assert (row.state, row.gate, row.job_id, row.worst_difference) == ("finished", "failed", task.claim.job_id, -5.0)
