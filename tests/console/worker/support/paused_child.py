"""The child of a worker under test: `paused_child.py MARK [STAGE]` does what the real one does, and also what is written here.

Jobs of the kind `drill` do what their payload's `do` says. In other kinds, STAGE is where the child stays until it is
asked to end. Every process of a test carries its MARK in its command line.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from roundhouse.console.benchmarks.recording import record_folder
from roundhouse.console.worker import child
from roundhouse.console.worker.kinds import run_kind
from roundhouse.console.worker.measuring import JobWatcher
from roundhouse.console.worker.task import Task, TaskFailedError
from roundhouse.errors import UsageError

MARK, *STAGES = sys.argv[1:]


def stages(task: Task) -> dict[str, Any]:
    with task.stage("first", "the first part"):
        task.progress(0.5)
        task.say("half of it")
    with task.stage("second", "the second part"):
        task.progress(2.0)
    return {"said": task.payload["say"]}


def wait(task: Task) -> dict[str, Any]:
    task.begin_stage("waiting", "for the end")
    task.stopping.wait()
    task.check_stopping()
    return {}


def stubborn(task: Task) -> dict[str, Any]:
    """Hears nothing, and neither does what it started."""
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", deaf, MARK])
    task.begin_stage("deaf", "to everything")
    while True:
        time.sleep(600)


def finish_anyway(task: Task) -> dict[str, Any]:
    task.begin_stage("waiting", "for the end, and then goes on")
    task.stopping.wait()
    return {"finished": True}


def measure(task: Task) -> dict[str, Any]:
    """Writes down half of a benchmark run, and goes on for ever."""
    sys.path.append(str(Path(__file__).parents[2] / "support"))
    from measured import benchmark_content, write_benchmark

    watcher = JobWatcher(task, record_folder)
    watcher.began(write_benchmark(task.home, benchmark_content(0, part=0.5)).folder)
    return wait(task)


def fail(task: Task) -> dict[str, Any]:
    raise UsageError("there is no such thing", hint="Take another.")


def fail_badly(task: Task) -> dict[str, Any]:
    raise KeyError("somewhere")


def fail_with_result(task: Task) -> dict[str, Any]:
    raise TaskFailedError("it came out badly", result={"score": float("nan")})


def die(task: Task) -> dict[str, Any]:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def talk(task: Task) -> dict[str, Any]:
    sys.stdout.write("no end of line")
    sys.stdout.flush()
    task.begin_stage("talking", "a lot")
    sys.stderr.write("to \x1b[31mstderr\x1b[0m\x00 and back\n")
    sys.stdout.write("\x1e is no event\n" + "x" * 5000 + "\n")
    for number in range(task.payload["lines"]):
        sys.stdout.write(f"line {number}\n")
    return {}


def publish(task: Task) -> dict[str, Any]:
    """Publishes a file when it is told to, by another one."""
    task.begin_stage("publish", "when it is time")
    go, place = Path(task.payload["go"]), Path(task.payload["place"])
    while not go.exists():
        time.sleep(0.02)
    with task.publishing():
        place.touch()
    return {}


class PausedTask(Task):
    def begin_stage(self, name: str, what: str) -> None:
        super().begin_stage(name, what)
        if name in STAGES:
            self.stopping.wait()
            self.check_stopping()


def run(task: Task) -> dict[str, Any]:
    if task.claim.kind != "drill":
        return run_kind(task)
    return globals()[task.payload["do"]](task)  # type: ignore[no-any-return]


child.Task = PausedTask  # type: ignore[misc]
child.run_kind = run
assert threading.current_thread() is threading.main_thread()
child.main()
