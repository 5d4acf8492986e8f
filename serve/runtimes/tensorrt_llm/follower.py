"""A process that is another rank of an engine than the first."""

from __future__ import annotations

import sys
from pathlib import Path

from roundhouse.build.engine import Engine
from roundhouse.errors import RoundhouseError

from ...last_words import failure_line

__all__ = ["run_follower"]


def run_follower(folder: Path) -> int:
    """Follow rank 0 until it has ended: no sockets, no scheduler.

    Args:
        folder: of the engine.

    Returns:
        The exit code. Any but 0 ends all ranks, as MPI sees to; what is wrong stands on standard error, in one line.
    """
    from .load import follow_engine

    try:
        engine = Engine.open(folder)
        with engine.held():
            follow_engine(engine)
    except RoundhouseError as error:
        sys.stderr.write(failure_line(error))
        return 1
    return 0
