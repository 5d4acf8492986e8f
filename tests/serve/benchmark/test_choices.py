"""From a command line to wishes, and back."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.build.store import EngineStore
from roundhouse.errors import BenchmarkStoppedError, UsageError
from roundhouse.serve.benchmark import run as room
from roundhouse.serve.benchmark.choices import numbers_of, wishes_of, with_ids, workload_of
from roundhouse.serve.benchmark.command_line import command_of
from roundhouse.serve.benchmark.store import BenchmarkStore
from roundhouse.serve.benchmark.wish import BenchmarkWish
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.benchmark.workload_files import shipped_workloads
from roundhouse.serve.settings import Overrides


def wishes(*subjects: str, overrides: Overrides | None = None, **common: Any) -> list[BenchmarkWish]:
    return wishes_of(subjects, overrides=overrides or Overrides(), **common)


def test_engines_and_endpoints_are_told_apart() -> None:
    engine, folder, endpoint = wishes("demo", "/a/folder", "http://host:9000")
    assert (engine.engine, engine.url) == ("demo", None)
    assert folder.engine == "/a/folder"
    assert (endpoint.engine, endpoint.url) == (None, "http://host:9000")


def test_an_engine_may_have_settings_of_its_own() -> None:
    shared = Overrides(max_batch_size=4, kv_cache_tokens=640)
    plain, own = wishes("demo", "demo:guard=off,kv_cache_bytes=4096", overrides=shared)
    assert plain.overrides == shared
    assert own.engine == "demo"
    assert own.overrides == Overrides(max_batch_size=4, guard="off", kv_cache_bytes=4096)


@pytest.mark.parametrize(
    ("subject", "says"),
    [
        ("127.0.0.1:9000", r"neither an engine nor a URL\nDid you mean http://127.0.0.1:9000\?"),
        ("localhost:9000/v1", r"Did you mean http://localhost:9000/v1\?"),
        ("grpc://host:1", r"Did you mean http://host:1\?"),
        ("demo:colour=red", "'colour=red' is no setting"),
        ("demo:guard=off,", "'' is no setting"),
        ("demo:guard=maybe", "guard maybe: Input should be"),
        ("demo:max_batch_size=0", "max_batch_size 0: Input should be greater"),
    ],
)
def test_a_subject_that_cannot_be_is_said(subject: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        wishes(subject)


def test_an_engine_is_asked_what_it_was_asked_before_and_a_server_that_stays_is_not() -> None:
    engine, other = wishes("demo", "base")
    assert engine.seed == other.seed == 0
    first, second = wishes("http://host:1", "http://host:2")
    assert first.seed == second.seed, "by turns they are asked the same"
    (again,) = wishes("http://host:1")
    assert again.seed != first.seed
    assert f"--seed {again.seed}" in command_of([again])
    assert [each.seed for each in wishes("http://host:1", "demo", seed=7)] == [7, 7]
    assert BenchmarkWish(url="http://host").seed != BenchmarkWish(url="http://host").seed
    assert BenchmarkWish(engine="demo").seed == 0


def test_a_key_goes_to_one_host_only() -> None:
    with pytest.raises(UsageError, match="one key would be sent to several hosts: one, two") as caught:
        wishes("http://one:1", "http://two:1/v1", api_key_variable="KEY")
    assert "run of its own" in (caught.value.hint or "")
    assert len(wishes("http://one:1", "https://ONE:2/v1", api_key_variable="KEY")) == 2
    assert len(wishes("http://one:1", "http://two:1")) == 2


@pytest.mark.parametrize(
    ("field", "value", "option"),
    [
        ("request_timeout_s", 0.0, "--timeout"),
        ("concurrencies", (0,), "--concurrency"),
        ("prefill_lengths", (0,), "--prefill"),
        ("repeats", 101, "--repeats"),
    ],
)
def test_what_cannot_be_is_said_of_the_option_that_there_is(field: str, value: object, option: str) -> None:
    with pytest.raises(UsageError, match=f"^{option} .*: Input should be "):
        wishes("demo", **{field: value})
    assert option in CliRunner().invoke(app, ["bench", "run", "--help"], env={"COLUMNS": "300"}).stdout


def test_options_of_one_kind_are_refused_for_the_other() -> None:
    with pytest.raises(UsageError, match="--guard is for engines that are started here"):
        wishes("http://host", overrides=Overrides(guard="off"))
    with pytest.raises(UsageError, match="--api-key-variable is for endpoints"):
        wishes("demo", api_key_variable="KEY")


@pytest.mark.parametrize(("text", "numbers"), [("1", (1,)), ("1,8, 32", (1, 8, 32)), ("32,1", (32, 1))])
def test_numbers_are_read(text: str, numbers: tuple[int, ...]) -> None:
    assert numbers_of("--concurrency", text) == numbers


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "are no numbers"),
        ("1,", "are no numbers"),
        ("many", "are no"),
        ("1.5", "are no"),
        ("0,4", "0 is below 1"),
        ("4,4", "twice"),
    ],
)
def test_what_are_no_numbers_names_the_option(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=f"^--concurrency '{text}': .*{says}"):
        numbers_of("--concurrency", text)


def test_lengths_make_a_workload_of_one_length() -> None:
    chosen = workload_of(None, input_tokens=7, output_tokens=3, requests_each=9)
    assert chosen == Workload(input_tokens=7, output_tokens=3, requests_each=9)
    assert workload_of(None, input_tokens=None, output_tokens=None, requests_each=None) == Workload()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"named": "talk", "input_tokens": 8}, "--workload and --input-tokens exclude each other"),
        ({"named": "no-such-workload"}, "no workload is called 'no-such-workload'"),
        ({"input_tokens": 0}, "--input-tokens 0: Input should be greater"),
        ({"output_tokens": -3}, "--output-tokens -3"),
    ],
)
def test_a_workload_that_cannot_be_is_said(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        workload_of(**{"named": None, "input_tokens": None, "output_tokens": None, "requests_each": None, **given})


WISHES = st.builds(
    BenchmarkWish,
    engine=st.sampled_from(["0123456789abcdef", "/a folder/it's"]),
    driver=st.sampled_from(["loop", "aiperf"]),
    workload=st.builds(
        Workload, input_tokens=st.integers(1, 99), output_tokens=st.integers(1, 99), requests_each=st.integers(1, 9)
    )
    | st.builds(
        Workload,
        name=st.sampled_from(["fixed", "chat", "it's mine"]),
        input_tokens=st.integers(50, 99),
        output_spread=st.integers(0, 9),
        prefix_tokens=st.integers(0, 49),
        cancel_share=st.sampled_from([0.0, 0.25]),
        least_requests=st.integers(1, 9),
    )
    | st.sampled_from(list(shipped_workloads().values())),
    concurrencies=st.lists(st.integers(1, 99), min_size=1, max_size=4, unique=True).map(tuple),
    repeats=st.integers(1, 100),
    prefill_lengths=st.lists(st.integers(1, 99), max_size=3, unique=True).map(tuple),
    seed=st.integers(0, 99),
    request_timeout_s=st.sampled_from([600.0, 2.5]),
    overrides=st.builds(
        Overrides,
        guard=st.sampled_from([None, "off", "tags+content"]),
        prefix_reuse=st.sampled_from([None, True, False]),
        kv_cache_tokens=st.sampled_from([None, 640]),
    ),
)


def test_an_engine_is_kept_as_what_it_is_still_called_tomorrow(
    tiny_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, id_ = Home(tmp_path / "home"), tiny_engine.manifest.id
    shutil.copytree(tiny_engine.folder, EngineStore(home).path(id_))
    monkeypatch.chdir(tmp_path)
    Path("there").symlink_to(tiny_engine.folder)
    found = with_ids(home, wishes(tiny_engine.manifest.name, "./there", "http://host", tokenizer="tok"))
    assert [wish.engine for wish in found] == [id_, str(tiny_engine.folder.resolve()), None]
    assert found[-1].tokenizer == str(tmp_path / "tok")


def told(command: str, monkeypatch: pytest.MonkeyPatch, home: Path) -> list[BenchmarkWish]:
    """What the real command line makes of a command."""
    heard: list[list[BenchmarkWish]] = []
    monkeypatch.setattr(room, "run_benchmarks", lambda home, wishes, watcher, *, command: heard.append(list(wishes)) or [])
    monkeypatch.setattr("roundhouse.serve.benchmark.choices.with_ids", lambda home, wishes: wishes)
    program, *words = shlex.split(command)
    assert program == "roundhouse"
    result = CliRunner().invoke(app, [*words, "--home", str(home)], catch_exceptions=False)
    assert result.exit_code == 0
    return heard[0]


@settings(max_examples=25)
@given(st.lists(WISHES, min_size=1, max_size=2))
def test_the_command_of_wishes_makes_them_again(found: list[BenchmarkWish]) -> None:
    alike = [found[0].model_copy(update={"engine": each.engine, "overrides": each.overrides}) for each in found]
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert told(command_of(alike), monkeypatch, Path("/nowhere")) == alike


@pytest.mark.parametrize("command", [["run"], ["compare", "--interleaved"]])
@pytest.mark.parametrize("form", ["talk.jsonl", "mine.yaml", "plain.yaml", "chat", "{input_tokens: 9, output_spread: 2}"])
def test_the_command_of_a_named_workload_asks_the_same_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], form: str
) -> None:
    (tmp_path / "talk.jsonl").write_text('{"prompt": "Hello?"}\n')
    (tmp_path / "mine.yaml").write_text("file: talk.jsonl\noutput_tokens: 7\noutput_spread: 2\nleast_requests: 3\n")
    (tmp_path / "plain.yaml").write_text("name: special\ninput_tokens: 7\n")
    told_commands: list[str] = []
    heard: list[BenchmarkWish] = []

    def stop(home: Home, wishes: Any, watcher: Any, *, command: str) -> list[Path]:
        told_commands.append(command)
        heard.append(wishes[0])
        raise BenchmarkStoppedError("the benchmark was stopped")

    monkeypatch.setattr(room, "run_benchmarks", stop)
    monkeypatch.setattr("roundhouse.serve.benchmark.choices.with_ids", lambda home, wishes: wishes)
    monkeypatch.chdir(tmp_path)
    words = ["bench", *command, "one", "two", "--workload", form, "--home", str(tmp_path / "home")]
    assert CliRunner().invoke(app, words).exit_code == 130
    monkeypatch.chdir("/")
    assert CliRunner().invoke(app, [*shlex.split(told_commands[0])[1:], "--home", str(tmp_path / "home")]).exit_code == 130
    first, again = heard
    assert again.workload == first.workload
    if form == "mine.yaml":
        workload = again.workload
        assert (workload.kind, workload.output_tokens, workload.output_spread, workload.least_requests) == (
            "conversations",
            7,
            2,
            3,
        )


def test_a_command_names_the_variable_of_a_key_and_not_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "secret")
    found = wishes("http://host/v1", model="m", api_key_variable="SOME_KEY", server="vLLM 0.32 on 8×H200")
    command = command_of(found)
    assert "secret" not in command
    assert "--api-key-variable SOME_KEY" in command
    assert told(command, monkeypatch, Path("/nowhere")) == found


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nobody"], 2, "no engine is called 'nobody'"),
        (["nobody", "--concurrency", "0"], 2, "0 is below 1"),
        (["--concurrency", "x", "nobody"], 2, "are no numbers"),
        (["nobody", "--prefill", "0"], 2, "--prefill '0': 0 is below 1"),
        (["nobody", "--workload", "w", "--output-tokens", "3"], 2, "exclude each other"),
        (["http://127.0.0.1:9", "--bare"], 2, "has no bare loop"),
        (["nobody", "--timeout", "0"], 2, "--timeout 0.0: "),
        (["nobody", "--timeout", "inf"], 2, "--timeout inf: "),
        (["nobody", "--timeout", "nan"], 2, "--timeout nan: "),
        (["nobody", "--workload", "{cancel_share: 0.5, cancel_after_s: .inf}"], 2, "cancel_after_s: Input should be"),
        (["http://127.0.0.1:9", "--metrics", "http://me:secret@h/metrics"], 2, "a user, a password or a query"),
        (["http://127.0.0.1:9", "--metrics", "http://h:99999/metrics"], 2, "is no URL of metrics"),
        (["http://127.0.0.1:9", "--metrics", "h:8002"], 2, "is no URL of metrics"),
        (["nobody", "--metrics", "http://h:8002/metrics"], 2, "--metrics is for endpoints"),
        (["nobody", "--guard", "none"], 2, "--guard none"),
    ],
)
def test_mistakes_end_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, says: str
) -> None:
    monkeypatch.setattr("roundhouse.serve.benchmark.aiperf.locate.find_aiperf", lambda home: None)
    result = CliRunner().invoke(app, ["bench", *words, "--home", str(tmp_path)])
    assert isinstance(result.exception, UsageError)
    assert result.exception.exit_code == code
    assert says in str(result.exception)
    assert list(BenchmarkStore(Home(tmp_path))) == []


def test_run_is_what_bench_does_when_nothing_else_is_named() -> None:
    runner = CliRunner()
    assert "--concurrency" in runner.invoke(app, ["bench", "run", "--help"]).stdout
    shown = runner.invoke(app, ["bench", "--help"]).stdout
    assert all(name in shown for name in ("run", "setup", "list", "compare"))
