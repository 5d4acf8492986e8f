"""A process that is another rank of an engine than the first."""

from __future__ import annotations

import os
import select
import sys
import threading
from pathlib import Path

from roundhouse.build.engine import Engine
from roundhouse.errors import RoundhouseError

from ...last_words import failure_line

__all__ = ["end_with_launcher", "run_follower"]


def end_with_launcher() -> None:
    """End this process, from a thread of its own, when the one that started it has: a killed ``mpirun`` ends nobody."""
    parent = os.getppid()

    def watch() -> None:
        try:
            waiting = select.poll()
            waiting.register(os.pidfd_open(parent), select.POLLIN)
            if os.getppid() == parent:  # else it ended before, and this number may be another's
                waiting.poll()
        except ProcessLookupError:
            pass
        os._exit(1)

    threading.Thread(target=watch, name="launcher-watch", daemon=True).start()


def run_follower(folder: Path) -> int:
    """Follow rank 0 until it has ended: no sockets, no scheduler.

    Args:
        folder: of the engine.

    Returns:
        The exit code. Any but 0 ends all ranks, as MPI sees to; what is wrong stands on standard error, in one line.
    """
    from .load import follow_engine

    end_with_launcher()
    try:
        engine = Engine.open(folder)
        with engine.held():
            follow_engine(engine)
    except RoundhouseError as error:
        sys.stderr.write(failure_line(error))
        return 1
    return 0
