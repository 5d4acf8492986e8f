from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from roundhouse.serve.process import tether

FAMILY = "sleep 301 & echo $! $$; exec sleep 302"
"""A command that starts another one, which ignores what becomes of it; prints both process ids."""


def tethered(*command: str) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, tether.__file__, *command], text=True, **pipes)


def family(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(pid) for pid in process.stdout.readline().split()]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter when it goes between opening and reading
        return True


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def test_the_whole_family_dies_when_the_owner_does() -> None:
    owner = f"""
import subprocess, sys, time
process = subprocess.Popen([sys.executable, {tether.__file__!r}, "sh", "-c", {FAMILY!r}], stdin=subprocess.PIPE)
time.sleep(300)
"""
    with subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True) as process:
        pids = family(process)
        assert len(pids) == 2
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: all(is_gone(pid) for pid in pids), "the family outlived its owner")


def test_what_a_command_leaves_running_is_killed_when_it_ends() -> None:
    with tethered("sh", "-c", FAMILY) as process:
        child, command = family(process)
        os.kill(command, signal.SIGKILL)
        assert process.wait(timeout=30) == 128 + signal.SIGKILL
        wait_for(lambda: is_gone(child), "the command's child outlived it")


def test_being_told_to_stop_is_passed_on_to_the_command_alone() -> None:
    script = "trap 'echo bye; exit 3' TERM; echo ready; while true; do sleep 0.05; done"
    with tethered("sh", "-c", script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.stdout.readline() == "bye\n"
        assert process.wait(timeout=30) == 3


def test_arguments_and_exit_codes_pass_unchanged() -> None:
    with tethered("sh", "-c", 'echo "$1|$2"; exit 5', "sh", "a b", "$c") as process:
        assert process.stdout is not None
        assert process.stdout.read() == "a b|$c\n"
        assert process.wait(timeout=30) == 5


def test_a_command_that_does_not_exist_fails() -> None:
    with tethered("/nowhere") as process:
        assert process.wait(timeout=30) == 1
        assert process.stderr is not None
        assert "/nowhere" in process.stderr.read()
