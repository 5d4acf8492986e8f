"""An evaluation from beginning to end: real tiny engines, and whoever stops or fails on the way."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import fake_scorer
import pytest
from fake_scorer import FakeScorer

from roundhouse.build.home import Home
from roundhouse.errors import BenchmarkStoppedError, ServeError, UsageError
from roundhouse.serve.accuracy import run as running
from roundhouse.serve.accuracy.records import Evaluation
from roundhouse.serve.accuracy.run import evaluate
from roundhouse.serve.accuracy.scorer import CallAnswer
from roundhouse.serve.accuracy.store import BASE, EvaluationStore, read_evaluation, read_items
from roundhouse.serve.accuracy.subjects import PreparedSubject
from roundhouse.serve.accuracy.wish import EvaluationWish
from roundhouse.serve.measurement.about import Subject
from roundhouse.serve.settings import Overrides

OVERRIDES = Overrides(max_seq_len=512, kv_cache_tokens=2048)


class Watching:
    """A watcher that remembers, and stops at a stage if it is told to."""

    def __init__(self, stop_at: str | None = None) -> None:
        self.stopping = threading.Event()
        self.folders: list[Path] = []
        self.stages: list[str] = []
        self.said: list[str] = []
        self.fractions: list[float] = []
        self._stop_at = stop_at

    def began(self, folder: Path) -> None:
        self.folders.append(folder)
        assert read_evaluation(folder).state == "running"

    def stage(self, name: str, what: str) -> None:
        self.stages.append(what)
        if name == self._stop_at:
            self.stopping.set()

    def progress(self, fraction: float) -> None:
        self.fractions.append(fraction)

    def say(self, line: str) -> None:
        self.said.append(line)


def run(home: Home, watcher: Watching | None = None, **wish: object) -> tuple[Path, Evaluation]:
    folder = evaluate(home, EvaluationWish.model_validate(wish), watcher or Watching(), command="roundhouse evaluate x")
    return folder, read_evaluation(folder)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Evaluate scorers that are made up: returns a function of subject and base."""

    def prepared(scorer: FakeScorer, name: str) -> PreparedSubject:
        subject = Subject(kind="endpoint", name=name, model=name, url="http://127.0.0.1:1/v1")
        return PreparedSubject(subject, scorer.room, lambda stopping: scorer, here=False)

    def go(subject: FakeScorer, base: FakeScorer | None = None, watcher: Watching | None = None, **wish: object):
        monkeypatch.setattr(running, "prepare_subject", lambda *_: prepared(subject, "subject"))
        if base is not None:
            monkeypatch.setattr(running, "prepare_base", lambda *_: prepared(base, "base"))
        return run(Home(tmp_path), watcher, engine="x", **wish)

    return go


def test_an_engine_is_compared_with_another_item_by_item(build_engine, session_home: Home, tmp_path: Path) -> None:
    subject = build_engine("llama", weights="int4_awq", kv_cache="fp8")
    base = build_engine("llama", weights="bf16", kv_cache="bf16")
    watcher = Watching()
    folder, found = run(
        Home(tmp_path), watcher, engine=str(subject.folder), against=str(base.folder), limit=2, overrides=OVERRIDES
    )
    assert found.state == "finished"
    assert [score.task for score in found.scores] == ["rh-perplexity", "rh-agreement", "rh-arithmetic", "rh-needle"]
    ((unfit, reason),) = ((each.task, each.reason) for each in found.unmeasured)
    assert unfit == "rh-tools"
    assert "this engine takes at most" in reason
    by_task = {score.task: score for score in found.scores}
    assert 0 < by_task["rh-agreement"].value < 1
    assert by_task["rh-agreement"].parts["KL"] > 0
    assert by_task["rh-agreement"].difference is None
    assert by_task["rh-perplexity"].difference is not None
    assert by_task["rh-perplexity"].value != by_task["rh-perplexity"].difference.base
    items = [item for item in read_items(folder) if item.task != "rh-agreement"]
    assert all(item.base_score is not None for item in items)
    theirs = {(item.task, item.number): item.score for item in read_items(folder, BASE)}
    assert {(item.task, item.number): item.base_score for item in items} == theirs
    assert found.header.subject.engine_id == subject.manifest.id
    assert found.header.base.engine_id == base.manifest.id
    where = found.header.environment
    assert where.hardware is not None, "an engine of ours runs on this machine, with our packages"
    assert {"roundhouse", "torch"} <= set(where.versions)
    assert (found.gate.state, len(found.gate.reasons)) == ("not measured", 1)
    assert watcher.stages[0].startswith("loading the base")


def test_an_engine_against_itself_agrees_wholly(build_engine, tmp_path: Path) -> None:
    engine = str(build_engine("llama", weights="bf16", kv_cache="bf16").folder)
    tasks = ("rh-perplexity", "rh-agreement")
    _, found = run(Home(tmp_path), engine=engine, against=engine, tasks=tasks, limit=6, overrides=OVERRIDES)
    perplexity, agreement = found.scores
    assert perplexity.difference.value == pytest.approx(0, abs=1e-9)
    assert (agreement.value, agreement.parts["KL"]) == (1.0, 0.0)


def test_a_base_that_was_evaluated_before_is_not_asked_again(asked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder, first = asked(FakeScorer(lambda _: "1"), limit=10, tasks=("rh-arithmetic", "rh-perplexity"))
    watcher = Watching()
    _, found = asked(FakeScorer(lambda _: "2"), watcher=watcher, limit=5, against=first.header.id, tasks=("rh-arithmetic",))
    (score,) = found.scores
    assert score.difference is not None
    assert (
        score.difference.base
        == sum(item.score for item in read_items(folder) if item.number < 5 and item.task == score.task) / 5
    )
    assert not any("base" in stage for stage in watcher.stages)
    _, more = asked(FakeScorer(lambda _: "2"), limit=15, against=first.header.id, tasks=("rh-arithmetic",))
    assert more.scores[0].difference is None
    assert more.scores[0].uncompared == "the base answered only 10 of these 15 questions"
    assert more.gate.state == "not measured"
    assert more.scores[0].uncompared in more.gate.reasons[0]
    _, other = asked(FakeScorer(), seed=1, against=first.header.id, tasks=("rh-arithmetic",))
    assert other.scores[0].difference is None
    assert other.gate.state == "not measured"
    assert "drew other questions" in other.gate.reasons[0]
    with pytest.raises(ServeError, match="no task could be measured"):
        asked(FakeScorer(), against=first.header.id, tasks=("rh-agreement",))


def test_a_worse_subject_fails_the_gate(asked) -> None:
    def knows(prompt: str) -> str:
        return re.search(r"The secret number of \w+ is (\d+)\.", prompt)[1]

    _, found = asked(FakeScorer(lambda _: "0", room=2048), FakeScorer(knows, room=2048), tasks=("rh-needle",))
    assert found.gate.state == "failed"
    assert found.gate.reasons[0].startswith("rh-needle is 100.0 points down")
    assert found.scores[0].parts == dict.fromkeys(("256 tokens", "512 tokens", "1,024 tokens", "2,048 tokens"), 0.0)


def test_what_cannot_be_measured_keeps_nothing_else_from_it(asked) -> None:
    subject = FakeScorer(lacking={"likelihoods": "the endpoint gives no log-probabilities"})
    _, found = asked(subject, FakeScorer(), limit=5)
    assert {each.task: each.reason for each in found.unmeasured} == {
        "rh-perplexity": "the endpoint gives no log-probabilities",
        "rh-agreement": "the endpoint gives no log-probabilities",
    }
    assert [score.task for score in found.scores] == ["rh-arithmetic", "rh-needle", "rh-tools"]
    assert found.gate.state == "passed"  # what is missing is no share of right answers


@pytest.mark.parametrize(
    ("nats", "reason"), [(math.nan, "is no number"), (-math.inf, "is no number"), (-1e6, "beyond any number")]
)
def test_a_model_that_computes_no_numbers_is_not_measured(asked, nats: float, reason: str) -> None:
    broken = FakeScorer(lambda _: "1", chance=lambda word: (nats, {word: -1.0}))
    _, found = asked(broken, limit=3, tasks=("rh-perplexity", "rh-arithmetic"))
    assert [score.task for score in found.scores] == ["rh-arithmetic"]
    ((task, told),) = ((each.task, each.reason) for each in found.unmeasured)
    assert task == "rh-perplexity"
    assert reason in told


def test_half_a_character_in_an_answer_is_written_down_as_a_question_mark(asked) -> None:
    folder, found = asked(FakeScorer(lambda _: "\ud83d 1"), limit=1, tasks=("rh-arithmetic",))
    assert found.state == "finished"
    (item,) = read_items(folder)
    assert item.answered == "? 1"


def test_answers_that_were_asked_for_in_another_way_are_not_compared(asked) -> None:
    watcher = Watching()
    _, found = asked(FakeScorer(call=lambda _: CallAnswer("", ())), FakeScorer(), watcher, tasks=("rh-tools",), limit=5)
    assert found.scores[0].difference is None
    assert any("asked in another way" in line for line in watcher.said)
    assert "asked in another way" in found.gate.reasons[0]


def test_a_stop_keeps_what_was_answered(asked) -> None:
    class Stopped(FakeScorer):
        def generate(self, prompts):
            for number, answer in super().generate(prompts):
                if number == 3:
                    raise BenchmarkStoppedError("the evaluation was stopped")
                yield number, answer

    watcher, subject = Watching(), Stopped()
    with pytest.raises(BenchmarkStoppedError):
        asked(subject, None, watcher, tasks=("rh-arithmetic",))
    found = read_evaluation(watcher.folders[0])
    assert (found.state, found.problem) == ("cancelled", None)
    assert len(list(read_items(watcher.folders[0]))) == 3
    assert subject.closed


def test_an_engine_ends_between_two_steps_when_it_is_stopped(build_engine, tmp_path: Path) -> None:
    watcher = Watching(stop_at="rh-needle")
    engine = str(build_engine("llama", weights="bf16", kv_cache="bf16").folder)
    with pytest.raises(BenchmarkStoppedError):
        run(Home(tmp_path), watcher, engine=engine, limit=3, overrides=OVERRIDES, tasks=("rh-arithmetic", "rh-needle"))
    found = read_evaluation(watcher.folders[0])
    assert found.state == "cancelled"
    assert [score.task for score in found.scores] == ["rh-arithmetic"]


def test_a_failure_is_told_in_a_sentence(asked, tmp_path: Path) -> None:
    watcher = Watching()
    with pytest.raises(ServeError, match="no task could be measured"):
        asked(FakeScorer(lacking={"completions": "it is broken"}), None, watcher, tasks=("rh-arithmetic",))
    found = read_evaluation(watcher.folders[0])
    assert (found.state, found.problem) == ("failed", "no task could be measured")
    assert found.unmeasured[0].reason == "it is broken"


KILLED = """
import os, signal, sys
from pathlib import Path
from fake_scorer import FakeScorer
from roundhouse.build.home import Home
from roundhouse.serve.accuracy import run
from roundhouse.serve.accuracy.subjects import PreparedSubject
from roundhouse.serve.accuracy.wish import EvaluationWish
from roundhouse.serve.measurement.about import Subject

class Killed(FakeScorer):
    def generate(self, prompts):
        for number, answer in super().generate(prompts):
            if number == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            yield number, answer

class Watcher:
    import threading
    stopping = threading.Event()
    began = stage = progress = say = lambda *_: None

subject = Subject(kind="endpoint", name="x", model="x")
run.prepare_subject = lambda *_: PreparedSubject(subject, 512, lambda stopping: Killed(), here=False)
run.evaluate(Home(Path(sys.argv[1])), EvaluationWish(engine="x", tasks=("rh-arithmetic",)), Watcher(), command="x")
"""


def test_what_was_answered_before_a_kill_is_there(tmp_path: Path) -> None:
    support = Path(fake_scorer.__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(support), *sys.path])}
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    (folder,) = EvaluationStore(Home(tmp_path)).records
    assert read_evaluation(folder).state == "interrupted"
    assert [item.number for item in read_items(folder)] == [0, 1, 2]


def test_without_a_base_agreement_is_left_out_unless_it_is_asked_for(asked, tmp_path: Path) -> None:
    _, found = asked(FakeScorer(), limit=2)
    assert "rh-agreement" not in found.header.tasks
    with pytest.raises(UsageError, match="compares with a base"):
        asked(FakeScorer(), tasks=("rh-agreement",))


def test_of_a_server_on_this_machine_only_what_is_known_is_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("roundhouse.serve.accuracy.subjects.model_at", lambda url, wanted, key: "m")
    monkeypatch.setattr("roundhouse.serve.accuracy.endpoint_scorer.EndpointScorer", lambda *_, **__: FakeScorer())
    _, found = run(Home(tmp_path), url="http://127.0.0.1:9", server="vLLM", tasks=("rh-arithmetic",), limit=1)
    where = found.header.environment
    assert (where.hardware, set(where.versions)) == (None, {"roundhouse (client)", "python (client)"})
    assert where.idle_cores is None, "nobody listens there, so nobody knows whose work is whose"


def test_nothing_begins_when_the_wish_cannot_be_fulfilled(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for wish in (
        {"engine": "nothing"},
        {"url": "http://127.0.0.1:9/v1"},
        {"engine": "x", "tasks": ["rh-unknown"]},
        {"engine": "x", "tasks": ["rh-tools", "rh-tools"]},
        {"engine": "x", "tasks": ["gsm8k"], "data": str(tmp_path / "none")},
    ):
        with pytest.raises(UsageError):
            run(home, **wish)
    assert list(EvaluationStore(home).records) == []
