"""Supervisors as processes: started apart from who starts them, found again, and stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import roundhouse
from roundhouse.errors import ServeError

from .folder import DeploymentFolder, SupervisorState
from .identity import process_start

__all__ = ["ALREADY_RUNNING", "Running", "find", "start", "stop"]

ALREADY_RUNNING = 3
"""The exit code of a supervisor that finds another one at its folder."""
_POLL_S = 0.05
_START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 5.0
"""Shorter than a job that is cancelled gets, before it is killed."""
_NOT_ITS = ("ROUNDHOUSE_DATABASE", "ROUNDHOUSE_API_KEY", "ROUNDHOUSE_API_KEYS_FILE")
"""What a worker may have in its environment and a deployment has no business with."""


@dataclass(frozen=True)
class Running:
    """A supervisor that is alive, and what it last said."""

    pid: int
    started: int
    state: SupervisorState


def start(folder: DeploymentFolder, stopping: threading.Event | None = None) -> Running | None:
    """Start the supervisor of a prepared folder, in a session of its own; or find the one that is at it.

    Args:
        folder: whose.
        stopping: when it is set before the supervisor has begun, that is ended again.

    Returns:
        As soon as it has the folder: it goes on starting for a while then. None when ``stopping`` was set before.

    Raises:
        ServeError: it ended at once.
    """
    path = folder.path.resolve()
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_ITS}
    package = str(Path(roundhouse.__file__).parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    errors = os.open(path / "start-errors.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-m", "roundhouse.console.supervisor", str(path)],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, errors, 1),
                (os.POSIX_SPAWN_DUP2, errors, 2),
                *((os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in _inheritable()),
            ],
            setsid=True,  # no signal to the group of who starts it reaches it
        )
    finally:
        os.close(errors)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        code = _exit_code(pid)
        running = find(folder)
        if running is not None and (running.pid == pid or code == ALREADY_RUNNING):
            return running
        if code is not None and code != ALREADY_RUNNING:
            state = folder.state()
            if state is not None and state.pid == pid:  # it said why
                raise ServeError(state.reason or f"the supervisor ended: {state.state}", hint=state.hint)
            words = (path / "start-errors.txt").read_text(errors="replace").strip().splitlines()
            raise ServeError(f"the supervisor could not start: {words[-1] if words else f'exit code {code}'}")
        if stopping is not None and stopping.is_set():
            if code is None:
                _end_child(pid)
            return None
        time.sleep(_POLL_S)
    raise ServeError(f"the supervisor of {folder.deployment_id} has not begun within {_START_TIMEOUT_S:.0f} s")


def find(folder: DeploymentFolder) -> Running | None:
    """The supervisor that is at a folder now, once it has said how it is.

    The lock says that there is one, pid and start say which process: another one with its number is never taken for it.
    """
    if not folder.is_watched:
        return None
    state = folder.state()
    if state is None or not _is_alive(state.pid, state.started):
        return None
    return Running(state.pid, state.started, state)


def stop(folder: DeploymentFolder, *, drain_s: float, patience_s: float = 60.0) -> bool:
    """End the supervisor of a folder, and with it all that it runs.

    Args:
        folder: whose.
        drain_s: how long running requests may go on.
        patience_s: how much longer it may take before it is killed.

    Returns:
        Whether there was one.
    """
    running = find(folder)
    if running is None:
        if folder.state() is not None:  # one that was killed lets go when its last thread has ended, soon after its first
            _wait_gone(folder, min(patience_s, _END_TIMEOUT_S))
        return False
    folder.set_drain(drain_s)
    _signal(running, signal.SIGTERM)
    if not _wait_gone(folder, drain_s + patience_s):
        _signal(running, signal.SIGKILL)
        _wait_gone(folder, patience_s)
    _exit_code(running.pid)
    return True


def _inheritable() -> list[int]:
    """Descriptors that a child would get. A worker that waits for the end of its job's pipe must not wait for a deployment."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own is gone by now
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found


def _wait_gone(folder: DeploymentFolder, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while folder.is_watched:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _signal(running: Running, number: signal.Signals) -> None:
    """Signal exactly this process: its descriptor is of the one whose start time is compared, whatever ends meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(running.pid)
        try:
            if _is_alive(running.pid, running.started):
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)


def _is_alive(pid: int, started: int) -> bool:
    return process_start(pid) == started


def _end_child(pid: int) -> None:
    """End a child of this process that nobody has waited for: its number is surely its own."""
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _END_TIMEOUT_S
    while _exit_code(pid) is None:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return
        time.sleep(_POLL_S)


def _exit_code(pid: int) -> int | None:
    """How a child of this process ended, which it is then forgotten; None while it runs, or when it is nobody's child here."""
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if found else None
