"""Supervisors as processes: which one is alive, and who is signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from deploying import in_a_thread, wait_for

from roundhouse.build.home import Home
from roundhouse.console.database.base import utc_now
from roundhouse.console.deployments.settings import DeploymentSettings
from roundhouse.console.supervisor import lock
from roundhouse.console.supervisor.folder import DeploymentFolder, Order, SupervisorState, deployments_of
from roundhouse.console.supervisor.identity import process_start
from roundhouse.console.supervisor.process import find, start, stop
from roundhouse.serve.process.tethered import TetheredProcess

HOLDER = """
import sys, signal
from pathlib import Path
from roundhouse.console.supervisor import lock
if sys.argv[2] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
assert lock.take(Path(sys.argv[1])) is not None
print("held", flush=True)
sys.stdin.read()
"""
STARTER = """
import sys, time
from pathlib import Path
from roundhouse.console.supervisor.folder import DeploymentFolder
from roundhouse.console.supervisor.process import start
print(start(DeploymentFolder(Path(sys.argv[1]))).pid, flush=True)
time.sleep(600)
"""
SLOW = """
import time
def make_served(order, secrets, on_log):
    time.sleep(600)
"""
"""Stands where what serves would be, so that a supervisor stays without serving anything."""


@pytest.fixture
def folder(tmp_path: Path) -> DeploymentFolder:
    home = Home(tmp_path)
    folder = DeploymentFolder(tmp_path / "deployments" / "0a0b0c0d")
    settings = DeploymentSettings(engine_id="nowhere", name="m")
    folder.prepare(Order(deployment_id="0a0b0c0d", home=home.path, settings=settings, sealed=None), first_line=1)
    return folder


@pytest.fixture
def holder(folder: DeploymentFolder, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock."""
    how = getattr(request, "param", "willing")
    command = [sys.executable, "-c", HOLDER, str(folder.lock), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def say(folder: DeploymentFolder, pid: int, started: int) -> None:
    folder.tell(SupervisorState(pid=pid, started=started, state="ready", since=utc_now()))


def start_of(process: subprocess.Popen[str]) -> int:
    started = process_start(process.pid)
    assert started is not None
    return started


def test_the_lock_is_held_until_the_process_ends(folder: DeploymentFolder, holder: subprocess.Popen[str]) -> None:
    assert lock.is_held(folder.lock)
    assert lock.take(folder.lock) is None
    holder.kill()
    holder.wait()
    assert not lock.is_held(folder.lock)
    mine = lock.take(folder.lock)
    assert mine is not None
    os.close(mine)


def test_looking_at_the_lock_takes_nothing(folder: DeploymentFolder) -> None:
    assert not lock.is_held(folder.lock)  # there is no file
    folder.lock.touch()
    assert not lock.is_held(folder.lock)
    first = lock.take(folder.lock)
    assert first is not None
    os.close(first)


def test_found_is_only_who_holds_the_lock_and_said_who_it_is(folder: DeploymentFolder, holder: subprocess.Popen[str]) -> None:
    assert find(folder) is None  # it has not said anything
    say(folder, holder.pid, start_of(holder))
    running = find(folder)
    assert running is not None
    assert running.pid == holder.pid
    holder.kill()
    holder.wait()
    assert find(folder) is None


def test_one_that_is_ending_already_is_waited_for(folder: DeploymentFolder, holder: subprocess.Popen[str]) -> None:
    say(folder, holder.pid, start_of(holder) - 1)  # as the first of its threads is gone, and another one not
    stopping = in_a_thread(lambda: stop(folder, drain_s=0))
    stopping.join(0.2)
    assert stopping.is_alive()
    holder.kill()
    stopping.join(30)
    assert not folder.is_watched


def test_a_process_that_only_got_the_number_is_never_signalled(folder: DeploymentFolder, holder: subprocess.Popen[str]) -> None:
    with subprocess.Popen(["sleep", "600"]) as stranger:
        say(folder, stranger.pid, (process_start(stranger.pid) or 0) - 1)
        assert find(folder) is None
        assert not stop(folder, drain_s=0, patience_s=0)
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("holder", ["willing", "stubborn"], indirect=True)
def test_who_does_not_end_is_killed(
    folder: DeploymentFolder, holder: subprocess.Popen[str], request: pytest.FixtureRequest
) -> None:
    say(folder, holder.pid, start_of(holder))
    assert stop(folder, drain_s=0.2, patience_s=0.2)
    assert process_start(holder.pid) is None
    assert not folder.is_watched


@pytest.mark.parametrize(
    ("order", "why"), [(None, "no engine has the id 'nowhere'"), ("{}", "the supervisor failed: 4 validation errors for Order")]
)
def test_a_supervisor_that_cannot_do_its_order_says_why(folder: DeploymentFolder, order: str | None, why: str) -> None:
    if order is not None:
        (folder.path / "settings.json").write_text(order)
    running = start(folder)
    wait_for(lambda: not folder.is_watched, "it has ended")
    state = folder.state()
    assert state is not None
    assert state.pid == running.pid
    assert state.state == "failed"
    assert why in (state.reason or "")


def test_it_outlives_who_started_it_and_its_tether(folder: DeploymentFolder, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text(f"import sys, types\nm = types.ModuleType('s')\nexec({SLOW!r}, m.__dict__)\n"
        "sys.modules['roundhouse.console.supervisor.served'] = m\n")  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": f"{slow}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    lines: list[str] = []
    starter = TetheredProcess([sys.executable, "-c", STARTER, str(folder.path)], environment, lines.append)
    wait_for(lambda: bool(lines), "it was started")
    pid = int(lines[0])
    assert os.getsid(pid) == pid
    starter.close()  # kills the group of the starter
    running = find(folder)
    assert running is not None
    assert running.pid == pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not folder.is_watched, "it is gone")


def test_one_that_is_to_stop_before_it_has_begun_is_ended(
    folder: DeploymentFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, mark = tmp_path / "slow", tmp_path / "pid"
    slow.mkdir()
    beginning = f"import os, pathlib, time\nfile = pathlib.Path({str(mark)!r})\n"
    beginning += (
        "file.with_suffix('.new').write_text(str(os.getpid()))\nfile.with_suffix('.new').rename(file)\ntime.sleep(600)\n"
    )
    (slow / "sitecustomize.py").write_text(beginning)
    monkeypatch.setenv("PYTHONPATH", f"{slow}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    stopping, started = threading.Event(), []
    starting = in_a_thread(lambda: started.append(start(folder, stopping)))
    wait_for(mark.exists, "its process is there")
    stopping.set()
    starting.join()
    assert started == [None]
    assert process_start(int(mark.read_text())) is None
    assert not folder.is_watched


def test_only_folders_of_deployments_are_listed(folder: DeploymentFolder, tmp_path: Path) -> None:
    home = Home(tmp_path)
    (tmp_path / "deployments" / ".lock").touch()
    (tmp_path / "deployments" / ".other").mkdir()
    assert [each.deployment_id for each in deployments_of(home)] == ["0a0b0c0d"]
    assert deployments_of(Home(tmp_path / "none")) == []
