"""Run a command whose whole family ends with its owner: ``python tether.py COMMAND…``.

The owner holds the other end of this process's standard input. When that closes, even because the
owner was killed, everything the command has started is killed with it. The same happens when the
command ends by itself: Triton's Python stub can hang for ever, and the engine process under it,
once its server has died. SIGTERM is passed on to the command alone, which ends in its own time.

Run by path, so it imports nothing of the package.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys

__all__ = ["main"]


def main(command: list[str]) -> int:
    """Run the command and answer with its exit code (128 + n when signal n ended it)."""
    asked_early: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked_early.append(number))
    # A session of its own: one process group with everything the command starts, and without us.
    try:
        # Descriptors that we were given are for the command; Python's own are never inherited.
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, close_fds=False)
    except OSError as error:
        sys.exit(f"{command[0]} could not be started: {error.strerror}")
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    if asked_early:
        child.terminate()
    _wait_for_either_end(child.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # the child is not reaped yet, so the group is still its own
    code = child.wait()
    return code if code >= 0 else 128 - code


def _wait_for_either_end(pid: int) -> None:
    """Return when the process has ended, or when standard input has."""
    process = os.pidfd_open(pid)
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    waiting.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    while True:
        ready = {descriptor for descriptor, _ in waiting.poll()}
        if process in ready or not os.read(sys.stdin.fileno(), 4096):
            os.close(process)
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
