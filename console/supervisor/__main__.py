"""The supervisor: ``python -m roundhouse.console.supervisor FOLDER``.

It reads its order from the folder, says there how it is, writes the log there, and holds the lock until it ends. SIGTERM ends
it in order. Whatever ends it otherwise, even ``kill -9``, ends Triton and the engine with it, for they are on its tether.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Any

from roundhouse.build.home import Home
from roundhouse.errors import RoundhouseError
from roundhouse.serve.stop_signals import stop_signals

from ..access.sealing import KEY_VARIABLE, Sealer
from ..database.base import utc_now
from . import lock
from .folder import DeploymentFolder, Order, SupervisorState, SupervisorWord
from .identity import process_start
from .keeping import Keeper
from .log import LogWriter
from .process import ALREADY_RUNNING

__all__ = ["main"]


def main(path: str) -> int:
    """Run the deployment of a folder; returns when it has ended."""
    folder = DeploymentFolder(Path(path))
    if lock.take(folder.lock) is None:  # held by its descriptor, until this process ends
        return ALREADY_RUNNING
    log = LogWriter(folder.path)
    pid = os.getpid()
    started = process_start(pid) or 0

    def tell(word: SupervisorWord, **more: Any) -> None:
        folder.tell(SupervisorState(pid=pid, started=started, state=word, since=utc_now(), **more))
        log.say(f"supervisor: {word}" + (f": {more['reason']}" if more.get("reason") else ""))

    with stop_signals() as stop:
        tell("starting")
        try:
            order = folder.order()
            secrets = _secrets(order)
            from .served import make_served  # what serves takes a while to import; the state and the lock are there by now

            make = make_served(order, secrets, log.say)
            return int(not Keeper(make, tell, lambda: folder.drain_s).keep(stop))
        except RoundhouseError as error:
            tell("failed", reason=error.message, hint=error.hint)
        except Exception as error:  # whatever it is, its last word must say so
            traceback.print_exc()
            tell("failed", reason=f"the supervisor failed: {error!r}")
        return 1


def _secrets(order: Order) -> dict[str, str]:
    """The order's secrets. The key is taken out of the environment: Triton and the engine have no use for it."""
    secrets = {} if order.sealed is None else Sealer.of(Home(order.home)).open(order.sealed)
    os.environ.pop(KEY_VARIABLE, None)
    return secrets


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
