"""The driver: with aiperf itself against an endpoint that answers oddly, and with stand-ins for what goes wrong in aiperf."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from scripted_endpoint import Answer, ScriptedEndpoint
from stand_in_aiperf import write_stand_in

from roundhouse.build.home import Home, default_home
from roundhouse.errors import BenchmarkStoppedError, ServeError, SetupError
from roundhouse.serve.benchmark.aiperf.driver import AiperfDriver
from roundhouse.serve.benchmark.aiperf.locate import find_aiperf
from roundhouse.serve.benchmark.driver import PointWish
from roundhouse.serve.benchmark.workload import Workload

DATA = Path(__file__).parent / "data"
KEY = "sk-this-must-be-seen-nowhere"

StandIn = Callable[[str], AiperfDriver]


@pytest.fixture
def real_aiperf(monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home where aiperf itself is found."""
    home = default_home()
    try:
        aiperf = find_aiperf(home)
    except SetupError as error:
        pytest.skip(error.message)
    monkeypatch.setenv("ROUNDHOUSE_AIPERF", str(aiperf.executable))
    return home


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A driver whose aiperf is a script with a body of the test's."""

    def make(body: str) -> AiperfDriver:
        monkeypatch.setenv("ROUNDHOUSE_AIPERF", str(write_stand_in(tmp_path / "aiperf", body)))
        temporary = tmp_path / "temporary"
        temporary.mkdir(exist_ok=True)
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        return AiperfDriver(Home(tmp_path), url="http://h:9/v1", model="m", tokenizer=tmp_path, api_key=KEY)

    return make


def wish(requests: int = 2, workload: Workload | None = None, timeout_s: float = 20.0) -> PointWish:
    return PointWish(workload or Workload(output_tokens=8), concurrency=2, requests=requests, seed=7, timeout_s=timeout_s)


def copying(name: str) -> str:
    return f"shutil.copy({str(DATA / name / 'profile_export.jsonl')!r}, out)"


def writing(*records: dict[str, Any]) -> str:
    lines = "".join(json.dumps(each) + "\n" for each in records)
    return f"(out / 'profile_export.jsonl').write_text({lines!r})"


def failed(number: int, **error: object) -> dict[str, Any]:
    about = {"request_start_ns": number, "request_end_ns": number + 10}
    return {"metadata": about, "metrics": {}, "error": {"message": "it says no", **error}}


class Watched(ScriptedEndpoint):
    """Looks, when it is first asked, at the processes that this test has started, and says that it was asked."""

    def __init__(self, answers: list[Answer], asked: threading.Event | None = None) -> None:
        super().__init__(answers)
        self.asked = asked or threading.Event()
        self._others = set(psutil.Process().children(recursive=True))  # whole servers, which other tests have started
        self.processes: list[psutil.Process] = []
        self.commands: list[str] = []

    def turn(self, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        if not self.asked.is_set():
            self.processes = [each for each in psutil.Process().children(recursive=True) if each not in self._others]
            self.commands = [_command(each) for each in self.processes]
            self.asked.set()
        return super().turn(body, headers)


def test_aiperf_itself_counts_right_against_an_endpoint_that_answers_oddly(real_aiperf: Home, tmp_path: Path) -> None:
    talks = tmp_path / "talks.jsonl"
    talks.write_text(
        '{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]}\n'
        '{"prompt": "Bye."}\n',
        encoding="utf-8",
    )
    workload = Workload(kind="conversations", file=str(talks), output_tokens=8)
    with (
        Watched(["whole", "role only", "clumps", "told", "busy"]) as endpoint,
        AiperfDriver(real_aiperf, url=endpoint.url, model="scripted", tokenizer=None, api_key=KEY) as driver,
    ):
        measured = driver.measure(wish(10, workload), threading.Event())
        kept = {name: path.read_text(encoding="utf-8") for name, path in measured.files}
        files = [path.read_bytes() for folder in own_folders() for path in folder.rglob("*") if path.is_file()]
        assert files
    assert measured.tokens_from == "usage"
    assert Counter((each.outcome, each.error, each.output_tokens) for each in measured.requests) == {
        ("completed", None, 8): 4,
        ("failed", "empty answer", 0): 2,
        ("failed", "unfinished answer", 0): 2,
        ("failed", "http 429", 0): 2,
    }
    assert set(kept) == {"profile_export.jsonl", "profile_export_aiperf.json", "aiperf.log"}
    said = {json.dumps(body["messages"]) for body in endpoint.bodies}
    assert len(said) == 2
    assert any("Be brief." in each for each in said)
    assert all(body["max_tokens"] == 8 and body["ignore_eos"] for body in endpoint.bodies)
    assert {headers["Authorization"] for headers in endpoint.headers} == {f"Bearer {KEY}"}
    assert any("aiperf" in command for command in endpoint.commands)
    assert not any(KEY in command for command in endpoint.commands)
    assert not any(KEY.encode() in content for content in files)
    assert own_folders() == []


def test_stopping_ends_aiperf_with_all_its_processes(real_aiperf: Home) -> None:
    stop = threading.Event()
    with (
        Watched(["late"], asked=stop) as endpoint,  # stopped when the first request is there
        AiperfDriver(real_aiperf, url=endpoint.url, model="scripted", tokenizer=None, api_key=None) as driver,
        pytest.raises(BenchmarkStoppedError),
    ):
        driver.measure(wish(), stop)
    assert len(endpoint.processes) > 3
    deadline = time.monotonic() + 20
    while any(_lives(each) for each in endpoint.processes) and time.monotonic() < deadline:
        time.sleep(0.05)  # killed, but not gone yet
    assert not [each for each in endpoint.processes if _lives(each)]
    assert own_folders() == []


def own_folders() -> list[Path]:
    """What this process keeps among temporary files."""
    return list(Path(tempfile.gettempdir()).glob(f"roundhouse_{os.getpid()}_*"))


def _command(process: psutil.Process) -> str:
    """Empty for one that has ended: other tests of this process may have left some."""
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_an_endpoint_that_counts_nothing_is_measured_again_with_a_count_of_our_own(stand_in: StandIn) -> None:
    answer: dict[str, Any] = {"metadata": {"request_start_ns": 1, "request_end_ns": 2_000_000_000}, "metrics": {}}
    for name, value in (("time_to_first_token", 5.0), ("request_latency", 20.0)):
        answer["metrics"][name] = {"value": value}
    counted = {**answer, "metrics": {**answer["metrics"], "output_sequence_length": {"value": 3}}}
    body = f"""
if config["endpoint"]["use_server_token_count"]:
    {writing(answer)}
else:
    {writing(counted)}
"""
    with stand_in(body) as driver:
        for _ in range(2):
            measured = driver.measure(wish(), threading.Event())
            assert measured.tokens_from == "client"
            assert [each.output_tokens for each in measured.requests] == [3]


def test_files_are_there_until_the_next_point(stand_in: StandIn, tmp_path: Path) -> None:
    with stand_in(copying("mixed")) as driver:
        first = driver.measure(wish(), threading.Event())
        assert len(first.requests) == 20
        assert first.files[0][1].is_file()
        second = driver.measure(wish(), threading.Event())
        assert second.files[0][1].is_file()
        assert not first.files[0][1].exists()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_key_that_a_server_repeats_in_an_error_is_struck_out(stand_in: StandIn) -> None:
    repeated = failed(0, message=f"wrong key {KEY}", code=429)
    with stand_in(writing(repeated)) as driver:
        measured = driver.measure(wish(), threading.Event())
        assert "wrong key <redacted>" in measured.files[0][1].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "print('10:43:11.809 ERROR    The engine room is on fire (manager.py:139)'); sys.exit(1)",
            "The engine room is on fire$",
        ),
        (
            "print('╭─ Error ──╮'); print('│ 2 errors  │'); print('│ in a row  │'); sys.exit(2)",
            "exit code 2: 2 errors in a row$",
        ),
        ("raise RuntimeError('what nobody caught')", "RuntimeError: what nobody caught$"),
        ("sys.exit(3)", "exit code 3: nothing$"),
        (f"print('09:00 ERROR    bad key {KEY}'); sys.exit(1)", "bad key <redacted>$"),
        ("", "exit code 0: nothing$"),
        (f"{copying('mixed')}; sys.exit(1)", "exit code 1: nothing$"),
    ],
)
def test_what_aiperf_says_when_it_fails_is_told(stand_in: StandIn, body: str, says: str) -> None:
    with stand_in(body) as driver, pytest.raises(ServeError, match=says):
        driver.measure(wish(), threading.Event())


def test_a_key_is_struck_out_of_what_a_stuck_aiperf_said_last(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundhouse.serve.benchmark.aiperf.driver._OVERHEAD_S", 2.0)
    stuck = f"print('bad key {KEY}', flush=True); import time; time.sleep(60)"
    with stand_in(stuck) as driver, pytest.raises(ServeError, match=r"did not end within .*bad key <redacted>") as caught:
        driver.measure(wish(timeout_s=0.1), threading.Event())
    assert KEY not in str(caught.value)


def test_an_endpoint_that_is_away_is_no_result(stand_in: StandIn) -> None:
    gone = [failed(number, type="ClientConnectorError", message="Connect call failed") for number in range(2)]
    with (
        stand_in(f"{writing(*gone)}; sys.exit(1)") as driver,
        pytest.raises(ServeError, match=r"http://h:9 cannot be reached: Connect call failed"),
    ):
        driver.measure(wish(), threading.Event())


def test_an_endpoint_that_refuses_everything_is_no_result(stand_in: StandIn) -> None:
    refused = [failed(number, type="Bad Request", code=400, message="unknown field ignore_eos") for number in range(2)]
    with (
        stand_in(writing(*refused)) as driver,
        pytest.raises(ServeError, match=r"every request \(http 400\)") as caught,
    ):
        driver.measure(wish(), threading.Event())
    assert "cannot be measured so" in str(caught.value.hint)


def test_an_overloaded_endpoint_is_a_result(stand_in: StandIn) -> None:
    busy = [failed(number, type="Too Many Requests", code=429) for number in range(2)]
    with stand_in(f"{writing(*busy)}; sys.exit(1)") as driver:
        measured = driver.measure(wish(), threading.Event())
    assert [each.error for each in measured.requests] == ["http 429"] * 2


def test_one_that_hangs_is_ended(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundhouse.serve.benchmark.aiperf.driver._OVERHEAD_S", 0.0)
    with stand_in("time.sleep(60)") as driver, pytest.raises(ServeError, match="did not end within 0 s"):
        driver.measure(wish(timeout_s=0.2), threading.Event())
