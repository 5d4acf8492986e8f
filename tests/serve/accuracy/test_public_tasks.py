"""lm-evaluation-harness over a scorer, with data sets of each task's own schema on disk; no network."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from fake_scorer import FakeScorer

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.errors import BenchmarkStoppedError, ServeError, UsageError
from roundhouse.serve.accuracy import run as running
from roundhouse.serve.accuracy.harness import PUBLIC_TASKS, public_task
from roundhouse.serve.accuracy.harness import task as harness_task
from roundhouse.serve.accuracy.harness.data import require_data
from roundhouse.serve.accuracy.harness.quiet import quiet_harness
from roundhouse.serve.accuracy.scorer import Continuation, Likelihood, Prompt
from roundhouse.serve.accuracy.store import read_evaluation, read_items
from roundhouse.serve.accuracy.subjects import PreparedSubject
from roundhouse.serve.accuracy.suites.contract import Answered, Ground
from roundhouse.serve.accuracy.wish import EvaluationWish
from roundhouse.serve.measurement.about import Subject
from roundhouse.serve.settings import Overrides

GSM8K = {"question": "Ann has 2 pens and buys {}. How many has she?", "answer": "She has 2 + {} pens.\n#### {}"}


def lines(path: Path, rows: Sequence[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a few rows of each task."""
    from datasets import Dataset, DatasetDict

    folder = tmp_path_factory.mktemp("data sets")
    sums = [{"question": GSM8K["question"].format(n), "answer": GSM8K["answer"].format(n, 2 + n)} for n in range(1, 9)]
    with quiet_harness():
        DatasetDict({"train": Dataset.from_list(sums), "test": Dataset.from_list(sums[:4])}).save_to_disk(str(folder / "gsm8k"))
    arc = [
        {
            "id": f"q{number}",
            "question": f"Which is number {number}?",
            "choices": {"text": ["zero", "one", "two"], "label": ["A", "B", "C"]},
            "answerKey": "ABC"[number % 3],
        }
        for number in range(5)
    ]
    for task in ("arc_easy", "arc_challenge"):
        (folder / task / "data").mkdir(parents=True)
        with quiet_harness():
            for split in ("train", "test"):
                Dataset.from_list(arc).to_parquet(str(folder / task / "data" / f"{split}-00000-of-00001.parquet"))
    for place in PUBLIC_TASKS["mmlu"].leaves.values():
        rows = [
            {"question": f"{place} {number}?", "subject": place, "choices": ["w", "x", "y", "z"], "answer": number % 4}
            for number in range(5)
        ]
        lines(folder / place / "dev.jsonl", rows)
        lines(folder / place / "test.jsonl", rows[:2])
    pro = [
        {
            "question_id": number,
            "question": f"{category} {number}?",
            "options": ["no", "yes", "maybe"],
            "answer": "B",
            "answer_index": 1,
            "cot_content": "A: Let's think step by step. It is so. The answer is (B).",
            "category": category.removeprefix("mmlu_pro_").replace("_", " "),
            "src": "made",
        }
        for category in PUBLIC_TASKS["mmlu_pro"].leaves
        for number in range(5)
    ]
    for split in ("validation", "test"):
        lines(folder / "mmlu_pro" / f"{split}.jsonl", pro)
    return folder


class Knowing(FakeScorer):
    """Knows the first choice's likelihood to be the best, and answers every generation alike."""

    def __init__(self, said: str = "", *, likes: str = "") -> None:
        super().__init__()
        self.said = said
        self.likes = likes
        self.asked: list[Prompt] = []

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, str]]:
        self.asked += prompts
        yield from ((number, self.said) for number in reversed(range(len(prompts))))

    def likelihoods(self, continuations: Sequence[Continuation]) -> Iterator[tuple[int, Likelihood]]:
        for number, each in enumerate(continuations):
            liked = each.text.strip() == self.likes
            yield number, Likelihood(-1.0 if liked else -2.0, 1, liked)


def answers(task: str, data: Path, scorer: FakeScorer, limit: int | None = None) -> list[Answered]:
    return list(public_task(task, data).answer(Ground(scorer, 0, limit, None), None))


def test_gsm8k_is_asked_with_its_five_shots_and_judged_by_its_strict_match(data: Path) -> None:
    scorer = Knowing("That makes 4.\n#### 4")
    found = answers("gsm8k", data, scorer)
    assert [(each.number, each.score) for each in found] == [(0, 0.0), (1, 1.0), (2, 0.0), (3, 0.0)]
    assert scorer.asked[0].text.count("Question:") == 6
    assert "Question:" in scorer.asked[0].stop
    assert scorer.asked[0].cut
    assert found[0].answered == "That makes 4.\n#### 4"


@pytest.mark.parametrize("task", ["arc_easy", "arc_challenge"])
def test_arc_takes_the_likeliest_choice(data: Path, task: str) -> None:
    found = answers(task, data, Knowing(likes="one"))
    assert [each.score for each in found] == [0.0, 1.0, 0.0, 0.0, 1.0]
    assert found[1].answered == "choice 1"
    assert "Which is number 1?" in found[1].asked


def test_a_limit_takes_the_first_questions(data: Path) -> None:
    assert [each.number for each in answers("arc_easy", data, Knowing(likes="one"), limit=2)] == [0, 1]


def test_mmlu_s_subjects_are_parts_and_numbers_do_not_depend_on_the_limit(data: Path) -> None:
    every, few = answers("mmlu", data, Knowing(likes="A")), answers("mmlu", data, Knowing(likes="A"), limit=57)
    assert len(every) == 2 * 57
    assert {each.number for each in every} == set(range(2 * 57))
    assert {each.number for each in few} == set(range(57))
    assert {each.part for each in few} >= {"anatomy", "world_religions"}
    assert sum(each.score for each in every) == 57


def test_mmlu_pro_reads_the_letter_out_of_what_was_said(data: Path) -> None:
    found = answers("mmlu_pro", data, Knowing("So the answer is (B)."), limit=14)
    assert len(found) == 14
    assert all(each.score == 1 for each in found)
    assert {each.part for each in found} >= {"law", "computer_science"}


@pytest.mark.parametrize("task", ["gsm8k", "arc_easy"])
def test_questions_are_the_same_however_many_are_asked_together(data: Path, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = public_task(task, data)
    asked = []
    for together in (64, 2, 2):
        monkeypatch.setattr(harness_task, "_TOGETHER", together)
        scorer = Knowing("#### 4", likes="one")
        found = list(wanted.answer(Ground(scorer, 0, None, None), None))
        asked.append((found, [prompt.text for prompt in scorer.asked]))
        assert wanted.size(Ground(scorer, 0, None, None)) == len(found)
    assert asked[0] == asked[1] == asked[2]


def test_answers_come_before_all_is_asked_and_progress_only_rises(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness_task, "_TOGETHER", 2)
    scorer, fractions = Knowing("#### 4"), []
    coming = public_task("gsm8k", data).answer(Ground(scorer, 0, None, None, progress=fractions.append), None)
    assert [next(coming).number, next(coming).number] == [0, 1]
    assert len(scorer.asked) == 2
    assert [each.number for each in coming] == [2, 3]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


class Watcher:
    """Remembers where it is written, and how far it is."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.folders: list[Path] = []
        self.fractions: list[float] = []

    def began(self, folder: Path) -> None:
        self.folders.append(folder)

    def stage(self, name: str, what: str) -> None:
        self.fractions.clear()

    def progress(self, fraction: float) -> None:
        self.fractions.append(fraction)

    def say(self, line: str) -> None: ...


def test_a_stop_keeps_what_was_answered_before(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(Knowing):
        def likelihoods(self, continuations: Sequence[Continuation]) -> Iterator[tuple[int, Likelihood]]:
            self.batches = getattr(self, "batches", 0) + 1
            if self.batches == 3:
                raise BenchmarkStoppedError("the evaluation was stopped")
            yield from super().likelihoods(continuations)

    subject = Subject(kind="endpoint", name="x", model="x", url="http://127.0.0.1:1/v1")
    prepared = PreparedSubject(subject, None, lambda stopping: Stopped(likes="one"), here=False)
    monkeypatch.setattr(running, "prepare_subject", lambda *_: prepared)
    monkeypatch.setattr(harness_task, "_TOGETHER", 2)
    watcher = Watcher()
    wish = EvaluationWish(engine="x", tasks=("arc_easy",), data=str(data))
    with pytest.raises(BenchmarkStoppedError):
        running.evaluate(Home(tmp_path), wish, watcher, command="x")
    assert read_evaluation(watcher.folders[0]).state == "cancelled"
    assert [item.number for item in read_items(watcher.folders[0])] == [0, 1, 2, 3]
    assert watcher.fractions == sorted(watcher.fractions)


def test_an_engine_answers_public_tasks(build_engine: Callable[..., Engine], data: Path, tmp_path: Path) -> None:
    engine = str(build_engine("llama", weights="bf16", kv_cache="bf16").folder)
    # Short: what is too long loses its beginning, and answers are as long as there is room.
    overrides = Overrides(max_seq_len=96, kv_cache_tokens=512)
    wish = EvaluationWish(engine=engine, tasks=("arc_easy", "gsm8k"), data=str(data), limit=2, overrides=overrides)
    folder = running.evaluate(Home(tmp_path), wish, Watcher(), command="x")
    found = read_evaluation(folder)
    assert found.unmeasured == ()
    assert [(score.task, score.items) for score in found.scores] == [("arc_easy", 2), ("gsm8k", 2)]
    items = list(read_items(folder))
    assert all(re.fullmatch(r"choice [012]", item.answered) for item in items if item.task == "arc_easy")
    assert all(item.answered and item.wanted for item in items)


def test_what_the_harness_says_stays_off_the_terminal(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    answers("arc_easy", data, Knowing(likes="one"))
    assert capfd.readouterr() == ("", "")


def test_an_error_of_the_scorer_comes_out_as_it_is(data: Path) -> None:
    class Failing(Knowing):
        def likelihoods(self, continuations: Sequence[Continuation]) -> Iterator[tuple[int, Likelihood]]:
            raise ServeError("the engine is gone")

    with pytest.raises(ServeError, match=r"^the engine is gone"):
        answers("arc_easy", data, Failing())


def test_rows_of_another_schema_are_an_error_without_a_traceback(tmp_path: Path) -> None:
    for split in ("train", "test"):
        lines(tmp_path / "arc_easy" / f"{split}.jsonl", [{"prompt": "Who?", "completion": "I"}])
    with pytest.raises(ServeError, match="lm-evaluation-harness failed"):
        answers("arc_easy", tmp_path, Knowing())


def test_a_split_that_is_not_there_is_named(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"mmlu needs the split 'dev' in .*abstract_algebra"):
        require_data("mmlu", tmp_path)
    lines(tmp_path / "gsm8k" / "test.jsonl", [{"question": "?", "answer": "#### 1"}])
    with pytest.raises(UsageError, match="gsm8k needs the split 'train'"):
        public_task("gsm8k", tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "arc_easy").mkdir()
    for split in ("train", "test"):
        (tmp_path / "arc_easy" / f"{split}.parquet").write_bytes(b"no parquet")
    with pytest.raises(UsageError, match="arc_easy cannot be read"):
        answers("arc_easy", tmp_path, Knowing())


class Hub:
    """Answers with a status, and remembers which data sets it was asked for."""

    def __init__(self) -> None:
        self.status = 200
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if "/datasets/" in self.path:
                    outer.asked.append(self.path)
                data = json.dumps({"id": "x/y", "sha": "0", "siblings": [], "tags": []}).encode()
                self.send_response(outer.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub on this machine, with an empty cache of data sets; the client's session is made anew around it."""
    from datasets import config
    from huggingface_hub import close_session, constants

    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    started = Hub()
    monkeypatch.setattr(config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", started.url)
    close_session()
    yield started
    close_session()
    started.close()


def test_the_hub_is_asked_where_its_client_would_load_from(hub: Hub) -> None:
    require_data("gsm8k", None)
    assert hub.asked == ["/api/datasets/openai/gsm8k"]


def test_the_hub_is_asked_through_the_client_s_proxy(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setenv("HTTP_PROXY", hub.url)
    monkeypatch.setattr(constants, "ENDPOINT", "http://hub.invalid")
    require_data("gsm8k", None)
    assert hub.asked == ["http://hub.invalid/api/datasets/openai/gsm8k"]


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_hub_that_refuses_says_so(hub: Hub, status: int) -> None:
    hub.status = status
    with pytest.raises(UsageError, match=f"the hub refuses it: HTTP {status}") as error:
        require_data("gsm8k", None)
    assert "--data" in str(error.value.hint)


def test_nobody_where_the_hub_should_be_is_told(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UsageError, match=r"openai/gsm8k .*the hub cannot be reached"):
        require_data("gsm8k", None)


def cached(tmp_path: Path, dataset: str, configuration: str) -> None:
    folder = tmp_path / "cache" / dataset / configuration / "0.0.0" / "0123abcd"
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text(json.dumps({"config_name": configuration}))


def test_what_is_cached_is_told_by_configuration(hub: Hub, tmp_path: Path) -> None:
    hub.status = 404
    cached(tmp_path, "allenai___ai2_arc", "ARC-Easy")
    require_data("arc_easy", None)
    with pytest.raises(UsageError, match=r"allenai/ai2_arc \(ARC-Challenge\)"):
        require_data("arc_challenge", None)
    *most, last = PUBLIC_TASKS["mmlu"].configurations
    for each in most:
        cached(tmp_path, "cais___mmlu", each)
    with pytest.raises(UsageError, match=rf"cais/mmlu \({last}\)"):
        require_data("mmlu", None)
    cached(tmp_path, "cais___mmlu", last)
    require_data("mmlu", None)
    cached(tmp_path, "TIGER-Lab___mmlu-pro", "default")
    require_data("mmlu_pro", None)
    assert len(hub.asked) == 2


@pytest.mark.parametrize("task", list(PUBLIC_TASKS))
def test_the_cache_lies_where_the_client_looks_for_it(hub: Hub, tmp_path: Path, task: str) -> None:
    from datasets.packaged_modules.cache.cache import _find_hash_in_cache

    hub.status = 404
    owner, _, name = PUBLIC_TASKS[task].dataset.partition("/")
    for each in PUBLIC_TASKS[task].configurations:
        cached(tmp_path, f"{owner}___{name.lower()}", each)
        _find_hash_in_cache(PUBLIC_TASKS[task].dataset, each, str(tmp_path / "cache"), {}, None)
    require_data(task, None)


@pytest.mark.parametrize("task", list(PUBLIC_TASKS))
def test_configurations_are_those_that_the_harness_loads(task: str) -> None:
    import lm_eval.tasks
    from lm_eval.tasks._yaml_loader import load_yaml

    source = PUBLIC_TASKS[task]
    folder = Path(lm_eval.tasks.__file__).parent / source.folder
    loaded = [load_yaml(folder / f"{leaf}.yaml") for leaf in source.leaves]
    assert {config["dataset_path"] for config in loaded} == {source.dataset}
    assert {config.get("dataset_name") or "default" for config in loaded} == set(source.configurations)


def test_without_data_and_without_the_hub_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from datasets import config
    from huggingface_hub import constants

    monkeypatch.setattr(config, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match=r"gsm8k needs the data set openai/gsm8k \(main\), and the hub cannot be") as error:
        public_task("gsm8k", None)
    assert "--data" in str(error.value.hint)
