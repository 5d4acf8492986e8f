"""The process that does one attempt at a job: ``python -m roundhouse.console.worker.child``, started by a worker only."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback

from roundhouse.errors import RoundhouseError

from .kinds import run_kind
from .order import take_order
from .task import Task, TaskFailedError
from .wire import Ended, Event, as_line, plain_text

__all__ = ["main"]

_OUTPUT = 1
_writing = threading.Lock()


def main() -> None:
    """Do what the order says and tell how it ended."""
    order = take_order()
    task = Task(order, _send, _log)
    signal.signal(signal.SIGTERM, lambda *_: task.stopping.set())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True, errors="replace")
    ended = _done(task)
    task.close()
    _send(ended)


def _done(task: Task) -> Ended:
    try:
        return Ended(result=run_kind(task))
    except TaskFailedError as error:
        return Ended(result=error.result, error=error.message, hint=error.hint)
    except RoundhouseError as error:
        return Ended(error=error.message, hint=error.hint)
    except OSError as error:  # a full disk, a folder that cannot be written: the machine's fault, with its name in the message
        traceback.print_exc()
        return Ended(error=str(error), hint="Nothing is half-written. Free space or choose another folder, and try again.")
    except Exception as error:
        traceback.print_exc()
        return Ended(error=f"the worker's code failed: {type(error).__name__}: {error}, see the log")


def _send(event: Event) -> None:
    _write(as_line(event))


def _log(line: str) -> None:
    _write("".join(f"{plain_text(part)}\n" for part in line.splitlines()))


def _write(text: str) -> None:
    """Not through sys.stdout: libraries are silenced by putting something else there."""
    rest = text.encode("utf-8", errors="replace")
    with _writing:
        while rest:
            rest = rest[os.write(_OUTPUT, rest) :]


if __name__ == "__main__":
    main()
