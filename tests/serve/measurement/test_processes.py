"""Whose work it is that keeps the machine busy."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from roundhouse.serve.measurement.processes import CpuTimes, Family, families_at, look

BURN = "import time\nwhile time.process_time() < 0.4: pass\n"


@pytest.mark.parametrize(
    ("machine", "ours", "others"),
    [
        (20.0, 20.0, 0.0),
        (20.0, 8.0, 1.2),
        (8.0, 20.0, 0.0),  # the kernel's clocks tick apart
    ],
)
def test_what_we_did_not_take_is_what_others_took(machine: float, ours: float, others: float) -> None:
    before = CpuTimes(wall=100.0, machine=1000.0, ours=50.0)
    after = CpuTimes(wall=110.0, machine=1000.0 + machine, ours=50.0 + ours)
    assert before.others(after) == pytest.approx(others)


def test_looking_sees_this_process_at_work() -> None:
    before = look()
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    after = look()
    assert after.ours - before.ours >= 0.05
    assert after.wall > before.wall
    assert after.machine >= before.machine


@pytest.mark.parametrize("deep", [False, True])
def test_a_driver_that_came_and_went_was_ours(deep: bool) -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}])" if deep else BURN
    before = look()
    subprocess.run([sys.executable, "-c", code], check=True, start_new_session=True)
    assert look().ours - before.ours >= 0.35


LISTEN = """
import socket, subprocess, sys, time
server = socket.create_server(("127.0.0.1", 0))
child = subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"], stdout=subprocess.PIPE)
child.stdout.readline()
print(server.getsockname()[1], child.pid, flush=True)
sys.stdin.read()
child.kill()
child.wait()
"""


@pytest.fixture
def server() -> Iterator[tuple[int, set[int]]]:
    """A port somebody else listens on, and the processes that belong to it."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", LISTEN], stdin=pipe, stdout=pipe, start_new_session=True) as process:
        assert process.stdout is not None
        port, child = map(int, process.stdout.readline().split())
        yield port, {process.pid, child}
        process.communicate()


def test_the_family_at_a_url_is_who_listens_and_whom_it_started(server: tuple[int, set[int]]) -> None:
    port, pids = server
    families = families_at([f"http://127.0.0.1:{port}/v1", f"http://localhost:{port}/metrics"])
    assert families is not None
    assert {process.pid for family in families for process in family.members()} == pids


def test_a_port_that_nobody_listens_on_has_no_family(server: tuple[int, set[int]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    nobody, somebody = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{server[0]}"
    assert families_at([nobody]) is None
    assert families_at([somebody, nobody]) is None, "of several ports all must be known"


def test_a_family_whose_root_has_ended_takes_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    family = Family((ended.pid,))
    assert family.members() == set()
    assert look([family]).ours >= 0


def test_nobody_is_counted_twice() -> None:
    me = Family((os.getpid(),))
    assert look([me, me]).ours == pytest.approx(look([me]).ours, abs=5.0)
