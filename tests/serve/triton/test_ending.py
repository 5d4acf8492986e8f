"""However a deployment's process ends, nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from watching import descendants, engine_process, gone, leftovers, wait_for

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home


def serve(engine: Engine, home: Home) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("serve_until_told.py")
    command = [sys.executable, str(script), str(engine.folder), str(home.path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_killed_and_then_told_to_stop(tiny_engine: Engine, session_home: Home) -> None:
    with serve(tiny_engine, session_home) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline().startswith("ready")
        family = descendants(killed.pid)
        assert engine_process(killed.pid) in family
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        wait_for(lambda: all(gone(process) for process in family), "server, stub and engine process end")

    with serve(tiny_engine, session_home) as served:
        assert served.stdout is not None
        assert served.stdout.readline().startswith("ready")
        assert leftovers(killed.pid) == []
        assert leftovers(served.pid) != []
        family = descendants(served.pid)
        os.kill(served.pid, signal.SIGTERM)
        output, errors = served.communicate(timeout=60)
    assert (served.returncode, output, errors) == (0, "ended\n", "")
    assert all(gone(process) for process in family)
    assert leftovers(served.pid) == []


def test_a_closed_terminal_ends_it(tiny_engine: Engine, session_home: Home) -> None:
    with serve(tiny_engine, session_home) as served:
        assert served.stdout is not None
        assert served.stdout.readline().startswith("ready")
        family = descendants(served.pid)
        served.send_signal(signal.SIGHUP)
        output, errors = served.communicate(timeout=60)
    assert (served.returncode, output, errors) == (0, "ended\n", "")
    assert all(gone(process) for process in family)
    assert leftovers(served.pid) == []


def test_ctrl_c_while_it_starts(tiny_engine: Engine, session_home: Home) -> None:
    with serve(tiny_engine, session_home) as started:
        wait_for(lambda: engine_process(started.pid) is not None, "the engine process is there")
        family = descendants(started.pid)
        started.send_signal(signal.SIGINT)
        output, errors = started.communicate(timeout=60)
    assert (started.returncode, output, errors) == (0, "ended\n", "")
    assert all(gone(process) for process in family)
    assert leftovers(started.pid) == []
