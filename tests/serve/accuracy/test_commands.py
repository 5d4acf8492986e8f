"""`roundhouse evaluate`: what is typed, what is printed, and which exit code it ends with."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.build.home import Home
from roundhouse.build.store import EngineStore
from roundhouse.errors import BenchmarkStoppedError, ServeError, UsageError
from roundhouse.serve.accuracy.records import Difference, EvaluationHeader, Item, TaskScore, Unmeasured
from roundhouse.serve.accuracy.store import ITEMS, SCORES, UNMEASURED, EvaluationStore, read_evaluation
from roundhouse.serve.accuracy.subjects import prepare_base
from roundhouse.serve.accuracy.tasks import TASK_NAMES
from roundhouse.serve.accuracy.wish import EvaluationWish
from roundhouse.serve.accuracy.wishing import command_of, wish_of
from roundhouse.serve.measurement.about import Environment, Subject
from roundhouse.serve.settings import Overrides


def write(home: Path, id_: str, *, down: float = 0.0, base: bool = True, missing: bool = True, margin: float = 0.05) -> Path:
    subject = Subject(kind="endpoint", name="small", model="small", url="http://127.0.0.1:1/v1")
    header = EvaluationHeader.model_validate(
        {
            "id": id_,
            "began_at": "2027-01-02T03:04:05Z",
            "subject": subject,
            "base": subject.model_copy(update={"name": "large"}) if base else None,
            "tasks": ("rh-needle", "gsm8k"),
            "limit": 5,
            "seed": 0,
            "gate_points": 0.8,
            "command": "roundhouse evaluate http://127.0.0.1:1/v1",
            "environment": Environment(host="here", hardware=None, versions={}),
        }
    )
    score = TaskScore(
        task="rh-needle",
        suite="roundhouse",
        metric="accuracy",
        higher_is_better=True,
        is_share=True,
        value=0.9 - down,
        stderr=0.05,
        items=40,
        difference=Difference(base=0.9, value=-down, low=-down - margin, high=-down + margin) if base else None,
        parts={"256 tokens": 1.0},
        seconds=3.0,
    )
    with EvaluationStore(Home(home)).begin(header) as writer:
        writer.add(ITEMS, Item(task="rh-needle", number=0, score=1.0, asked="Where?", answered="There", wanted="There"))
        writer.add(SCORES, score)
        if missing:
            writer.add(UNMEASURED, Unmeasured(task="gsm8k", reason="no data", is_share=True))
    return writer.folder


def invoke(*words: str) -> Any:
    return CliRunner().invoke(app, ["evaluate", *words])


def test_evaluations_are_listed_shown_and_removed(tmp_path: Path) -> None:
    at = ("--home", str(tmp_path))
    assert "No evaluations yet" in invoke("list", *at).output
    write(tmp_path, "abc123", down=0.4)
    assert "abc123" in invoke("list", *at).output
    shown = invoke("show", "latest", "--items", *at).output
    for words in (
        "evaluation abc123 of small against large: finished",
        "50.0 %",
        "-40.0",
        "256 tokens",
        "gsm8k was not measured",
    ):
        assert words in shown
    assert "gate (0.8 points): failed" in shown
    assert "'Where?' → 'There'" in shown
    refused = CliRunner().invoke(app, ["evaluate", "remove", "abc", *at], input="n\n")
    assert "abc123: small against large, rh-needle, gsm8k, asked 2027-01-02 03:04; 0 raw files" in refused.stderr
    assert invoke("list", *at).output.count("abc123") == 1
    assert invoke("remove", "abc", "--yes", *at).stdout == "Removed abc123.\n"
    assert list(EvaluationStore(Home(tmp_path))) == []


def test_a_gate_that_passed_says_how_much_may_be_lost_nevertheless(tmp_path: Path) -> None:
    at = ("--home", str(tmp_path))
    write(tmp_path, "abc123", missing=False)
    assert "gate (0.8 points): passed" in invoke("show", "abc123", *at).output
    assert "rh-needle may be up to 5.0 points down" in invoke("show", "abc123", *at).output
    write(tmp_path, "def456", missing=False, margin=0.005)
    assert "may be up to" not in invoke("show", "def456", *at).output


def test_json_is_the_record(tmp_path: Path) -> None:
    folder = write(tmp_path, "abc123")
    found = json.loads(invoke("show", "abc123", "--items", "--json", "--home", str(tmp_path)).output)
    assert found["id"] == "abc123"
    assert found["scores"] == read_evaluation(folder).model_dump(mode="json")["scores"]
    assert found["items"][0]["answered"] == "There"
    assert found["gate"]["state"] == "not measured"
    listed = json.loads(invoke("list", "--json", "--home", str(tmp_path)).output)
    assert [each["id"] for each in listed["evaluations"]] == ["abc123"]
    assert listed["damaged"] == []


def test_damaged_evaluations_are_named_beside_the_others(tmp_path: Path) -> None:
    write(tmp_path, "abc123")
    (write(tmp_path, "def456") / "header.json").write_text("{")
    at = ("--home", str(tmp_path))
    listed = invoke("list", *at).output
    assert "abc123" in listed
    assert "def456/header.json is damaged" in listed
    found = json.loads(invoke("list", "--json", *at).output)
    assert [each["id"] for each in found["evaluations"]] == ["abc123"]
    assert "def456" in found["damaged"][0]
    (tmp_path / "evaluations" / "abc123" / "header.json").unlink()
    assert "No evaluations yet" not in invoke("list", *at).output


class Heard:
    """Remembers wishes and commands, and writes an evaluation as it is told to."""

    def __init__(self) -> None:
        self.wishes: list[EvaluationWish] = []
        self.commands: list[str] = []
        self.written: dict[str, Any] = {}
        self.error: Exception | None = None

    def __call__(self, home: Home, wish: EvaluationWish, watcher: Any, *, command: str) -> Path:
        self.wishes.append(wish)
        self.commands.append(command)
        folder = write(home.path, f"abc{len(self.wishes)}", **self.written)
        watcher.began(folder)
        if self.error is not None:
            raise self.error
        return folder


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """What the command line wished for, instead of an evaluation."""
    from roundhouse.serve.accuracy import run

    told = Heard()
    monkeypatch.setattr(run, "evaluate", told)
    return told


URL, OTHER = "http://127.0.0.1:9000/v1", "http://127.0.0.1:9001/v1"


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ({"down": 0.4}, 1),
        ({"down": 0.4, "missing": False}, 1),
        ({"missing": False}, 0),
        ({}, 4),  # gsm8k came to nothing
        ({"base": False, "missing": False}, 0),  # nobody asked for a comparison
    ],
)
def test_the_exit_code_says_what_the_gate_says(tmp_path: Path, heard: Heard, written: dict[str, Any], code: int) -> None:
    heard.written = written
    result = invoke(URL, "--against", OTHER, "--tasks", "rh-needle", "--limit", "5", "--home", str(tmp_path))
    assert result.exit_code == code, result.output
    assert heard.wishes == [EvaluationWish(url=URL, against=OTHER, tasks=("rh-needle",), limit=5)]
    assert ("The gate was not measured: gsm8k was not measured: no data" in result.stderr) == (code == 4)


@pytest.mark.parametrize(("error", "code"), [(BenchmarkStoppedError("stopped"), 130), (ServeError("it fell over"), 1)])
def test_what_was_kept_is_told_when_it_ends_early(tmp_path: Path, heard: Heard, error: Exception, code: int) -> None:
    heard.error = error
    result = invoke(URL, "--home", str(tmp_path))
    assert getattr(result.exception, "exit_code", result.exit_code) == code
    assert str(tmp_path / "evaluations" / "abc1") in result.stderr
    assert "roundhouse evaluate show abc1 --items" in result.stderr


def test_a_wish_that_does_not_fit_names_the_option() -> None:
    with pytest.raises(UsageError, match="--guard sometimes"):
        wish_of("demo", tasks=None, overrides={"guard": "sometimes"})
    with pytest.raises(UsageError, match="--kv-cache-tokens 0"):
        wish_of("demo", tasks=None, overrides={"kv_cache_tokens": 0})


@pytest.mark.parametrize(
    ("option", "value"),
    [("--gate", "inf"), ("--gate", "101"), *(("--timeout", value) for value in ("inf", "nan", "1e9"))],
)
def test_what_is_no_number_is_refused(tmp_path: Path, heard: Heard, option: str, value: str) -> None:
    result = invoke(URL, option, value, "--home", str(tmp_path))
    assert isinstance(result.exception, UsageError)
    assert result.exception.message.startswith(f"{option} {float(value)}: Input should be ")
    assert heard.wishes == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([URL, "--guard", "off"], f"--guard is for engines that are loaded here; {URL} runs as it is"),
        ([URL, "--against", OTHER, "--kernels", "torch"], "--kernels is for engines"),
        ([URL, "--against", "abc123", "--no-prefix-reuse"], "--prefix-reuse is for engines"),
        (["demo", "--model", "m"], "--model is for endpoints"),
        (["demo", "--server-name", "vLLM"], "--server-name is for endpoints"),
        (["demo", "--against", URL, "--api-key-variable", "KEY"], "--api-key-variable is for endpoints"),
        (["demo", "--against-model", "m"], "--against-model is for a base that is an endpoint"),
        ([URL, "--against", "demo", "--against-api-key-variable", "KEY"], "--against-api-key-variable is for a base"),
    ],
)
def test_what_would_be_ignored_is_refused(tmp_path: Path, heard: Heard, words: list[str], says: str) -> None:
    write(tmp_path, "abc123")
    result = invoke(*words, "--home", str(tmp_path))
    assert isinstance(result.exception, UsageError)
    assert says in result.exception.message
    assert heard.wishes == []


def test_names_and_paths_are_kept_as_what_they_stand_for(
    build_engine: Any, tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = build_engine("llama", weights="bf16", kv_cache="bf16")
    home = tmp_path / "home"
    own = home / "engines" / elsewhere.manifest.id
    shutil.copytree(elsewhere.folder, own)
    write(home, "abc123")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").symlink_to(elsewhere.folder)
    at = ("--home", str(home))
    assert EngineStore(Home(home)).path(elsewhere.manifest.id) == own
    invoke(elsewhere.manifest.name, "--against", "latest", "--data", "sets", *at)
    invoke("./there", "--against", str(own), *at)
    invoke(URL, "--against", elsewhere.manifest.id[:6], "--guard", "off", *at)
    first, second, third = heard.wishes
    assert (first.engine, first.against, first.data) == (elsewhere.manifest.id, "abc123", str(tmp_path / "sets"))
    assert (second.engine, second.against) == (str(elsewhere.folder.resolve()), elsewhere.manifest.id)
    assert (third.against, third.overrides.guard) == (elsewhere.manifest.id, "off")
    assert heard.commands[0] == command_of(first)


def test_a_base_that_could_be_several_is_told_so(tmp_path: Path, heard: Heard) -> None:
    write(tmp_path, "abc123")
    write(tmp_path, "abc456")
    for wanted, says in (("abc", "could be several evaluations: "), ("xyz", "no evaluation is called 'xyz'")):
        result = invoke(URL, "--against", wanted, "--home", str(tmp_path))
        assert isinstance(result.exception, UsageError)
        assert says in result.exception.message
        assert f"no engine is called '{wanted}'" in result.exception.message


TEXTS = st.sampled_from(["m", "it's mine", "-v", "--model", "a=b", "ü x"])
KEYS = st.sampled_from([None, "KEY", "OTHER_KEY"])
VALUES = st.fixed_dictionaries(
    {
        "tasks": st.lists(st.sampled_from(TASK_NAMES), max_size=3, unique=True).map(tuple),
        "limit": st.none() | st.integers(1, 9),
        "data": st.sampled_from([None, "/sets", "/my sets"]),
        "gate_points": st.floats(0, 50),
        "seed": st.integers(0, 99),
        "request_timeout_s": st.floats(0.1, 86_400),
    }
)
OVERRIDES = st.builds(
    Overrides,
    guard=st.sampled_from([None, "off", "tags+content"]),
    guard_sample=st.none() | st.floats(0.01, 1),
    prefix_reuse=st.sampled_from([None, True, False]),
    memory_fraction=st.none() | st.floats(0.01, 1),
    **{
        name: st.none() | st.integers(1, 9)
        for name in ("page_tokens", "max_batch_size", "max_seq_len", "max_num_tokens", "kv_cache_tokens", "max_waiting")
    },
    kernels=st.sampled_from([None, "native", "torch"]),
)


@st.composite
def wishes(draw: st.DrawFn) -> EvaluationWish:
    """Any wish that the command line can make."""
    subject = draw(st.sampled_from(["14cadfd1bc71d1e6", "/engines/my own", URL]))
    against = draw(st.sampled_from([None, "0123456789abcdef", OTHER]))
    changed: dict[str, Any] = {"against": against, "url" if "://" in subject else "engine": subject}
    if "://" in subject:
        changed |= {"model": draw(st.none() | TEXTS), "server": draw(st.none() | TEXTS), "api_key_variable": draw(KEYS)}
    if against == OTHER:
        changed |= {"against_model": draw(st.none() | TEXTS), "against_api_key_variable": draw(KEYS)}
    if "://" not in subject or against == "0123456789abcdef":
        changed["overrides"] = draw(OVERRIDES)
    return EvaluationWish.model_validate({**draw(VALUES), **changed})


@settings(max_examples=30)
@given(wishes())
def test_the_command_of_a_wish_makes_it_again(wish: EvaluationWish) -> None:
    program, group, *words = shlex.split(command_of(wish))
    assert (program, group) == ("roundhouse", "evaluate")
    with pytest.MonkeyPatch.context() as monkeypatch, tempfile.TemporaryDirectory() as home:
        told = Heard()
        monkeypatch.setattr("roundhouse.serve.accuracy.run.evaluate", told)
        monkeypatch.setattr("roundhouse.serve.accuracy.wishing.with_ids", lambda home, wish: wish)
        invoke(*words, "--home", home)
    assert told.wishes == [wish]


def test_a_command_says_what_differs_from_the_usual() -> None:
    assert command_of(EvaluationWish(engine="demo")) == "roundhouse evaluate demo"
    wish = wish_of(URL, tasks="rh-needle, gsm8k", against="base engine", limit=5, gate_points=1.5, overrides={"guard": "off"})
    assert command_of(wish) == (
        f"roundhouse evaluate {URL} --tasks rh-needle,gsm8k --against 'base engine' --limit 5 --gate 1.5 --guard off"
    )


class Asked(BaseHTTPRequestHandler):
    """An endpoint that remembers which key it was sent."""

    keys: ClassVar[dict[int, set[str | None]]] = {}
    models: ClassVar[list[str]] = ["m"]

    def do_GET(self) -> None:
        self.keys.setdefault(self.server.server_port, set()).add(self.headers.get("authorization"))
        data = json.dumps({"data": [{"id": name} for name in self.models]}).encode()
        self.send_response(200 if self.models else 401)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def servers() -> Iterator[tuple[int, int]]:
    started = [ThreadingHTTPServer(("127.0.0.1", 0), Asked) for _ in range(2)]
    threads = [threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.02}) for each in started]
    for thread in threads:
        thread.start()
    Asked.keys.clear()
    yield started[0].server_port, started[1].server_port
    for server, thread in zip(started, threads, strict=True):
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_key_is_sent_to_nobody_but_its_own_server(
    servers: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "a")
    monkeypatch.setenv("OTHER_KEY", "b")
    own, other = (f"http://127.0.0.1:{port}" for port in servers)

    def sent(port: int, **wish: Any) -> set[str | None]:
        Asked.keys.clear()
        prepare_base(Home(tmp_path), EvaluationWish(url=own, api_key_variable="KEY", **wish))
        return Asked.keys[port]

    assert sent(servers[1], against=other) == {None}
    assert sent(servers[0], against=f"{own}/v1") == {"Bearer a"}
    assert sent(servers[1], against=other, against_api_key_variable="OTHER_KEY") == {"Bearer b"}
    assert sent(servers[0], against=own, against_api_key_variable="OTHER_KEY") == {"Bearer b"}
    with pytest.raises(UsageError, match="MISSING"):
        sent(servers[1], against=other, against_api_key_variable="MISSING")


@pytest.mark.parametrize(
    ("models", "option"), [([], "--against-api-key-variable NAME"), (["m", "n"], "Choose one with --against-model.")]
)
def test_what_a_base_lacks_is_asked_for_by_the_base_s_own_option(
    servers: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: list[str], option: str
) -> None:
    monkeypatch.setattr(Asked, "models", models)
    with pytest.raises(UsageError) as error:
        prepare_base(Home(tmp_path), EvaluationWish(engine="x", against=f"http://127.0.0.1:{servers[0]}"))
    assert option in str(error.value.hint)
