"""The process that a bare engine loop is measured in: ``python -m roundhouse.serve.benchmark.loop_process``.

It is prepared as the engine process is, so that memory and threads are the same; only nobody stands between the loop and
whoever measures. Messages come on standard input and leave on standard output; what libraries print goes to standard
error. When standard input closes, for whatever reason, the process ends at once.
"""

from __future__ import annotations

import argparse
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from roundhouse.build.engine import Engine
from roundhouse.errors import RoundhouseError

from ..runtimes.tensorrt_llm.follower import run_follower
from ..runtimes.tensorrt_llm.launch import is_follower
from ..settings import EngineSettings
from ..threads import prepare_threads
from .loop_messages import Broken, Done, FromLoop, Measure, Ready, Stop, Told, ToLoop

if TYPE_CHECKING:
    from ..engine.loop import EngineLoop

__all__ = ["main"]

_TOLD_EVERY_S = 0.1


class _LoopServer:
    """Measures points on an engine loop, one after another.

    Args:
        loop: idle.
        engine: whose loop it is.
        settings: with which it runs.
        send: takes what there is to say.
        stop: set from another thread when the point under way is to end.
    """

    def __init__(
        self,
        loop: EngineLoop,
        engine: Engine,
        settings: EngineSettings,
        send: Callable[[FromLoop], None],
        stop: threading.Event,
    ) -> None:
        self._loop = loop
        self._engine = engine
        self._settings = settings
        self._send = send
        self._stop = stop

    def tell(self) -> None:
        """Tell what the engine counts now."""
        from .counts import sample_of_status

        self._send(Told(sample_of_status(self._loop.status()).model_dump()))

    def measure(self, wish: Measure) -> Done:
        """Send the requests of a point and wait for them; no requests come back when it was stopped meanwhile."""
        from .closed_loop import ClosedLoop
        from .first_prompts import first_prompts
        from .prompts import plan_requests
        from .workload import Workload

        workload = Workload.model_validate(wish.workload)
        requests = plan_requests(
            workload,
            wish.requests,
            seed=wish.seed,
            vocab=self._engine.manifest.plan.shape.vocab,
            longest=self._settings.longest_request,
            conversations=lambda: first_prompts(workload, self._engine),
        )
        point = ClosedLoop(self._loop, requests, concurrency=wish.concurrency, timeout_s=wish.timeout_s)
        self.tell()
        told = 0.0  # so that the first step's is told: a short point has few
        while not point.done and not self._stop.is_set():
            point.step()
            if (now := time.monotonic()) - told >= _TOLD_EVERY_S:
                told = now
                self.tell()
        stopped = not point.done
        point.cancel_all()
        self._loop.check_integrity()
        self.tell()
        return Done([] if stopped else point.measured)


def main(arguments: list[str] | None = None) -> int:
    """Run the process; returns when it broke."""
    options = _parse(arguments)
    if is_follower(options.engine):
        return run_follower(options.engine)
    out = os.dup(1)
    os.dup2(2, 1)  # whatever prints
    encode = msgspec.json.Encoder().encode

    def send(message: FromLoop) -> None:
        data = encode(message) + b"\n"
        while data:
            data = data[os.write(out, data) :]

    stop, wishes = threading.Event(), queue.SimpleQueue[Measure]()
    threading.Thread(target=_listen, args=(wishes, stop), name="listen", daemon=True).start()
    prepare_threads()
    try:
        engine = Engine.open(options.engine)
        settings = EngineSettings.model_validate_json(options.settings)
        with engine.held():  # while this process lives, nobody removes the engine
            from ..runtimes import create_loop

            server = _LoopServer(create_loop(engine, settings), engine, settings, send, stop)
            server.tell()
            send(Ready())
            while True:
                send(server.measure(wishes.get()))
    except RoundhouseError as error:
        send(Broken(error.message, error.hint))
    except Exception as error:
        send(Broken(f"{type(error).__name__}: {error}"))
        raise
    return 1


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="An engine loop that is measured.")
    parser.add_argument("--engine", type=Path, required=True, help="engine folder")
    parser.add_argument("--settings", required=True, help="EngineSettings as JSON")
    return parser.parse_args(arguments)


def _listen(wishes: queue.SimpleQueue[Measure], stop: threading.Event) -> None:
    """Take messages from standard input, and end the process with it."""
    decode = msgspec.json.Decoder(ToLoop).decode
    with os.fdopen(0, "rb", closefd=False) as lines:
        for line in lines:
            message = decode(line)
            if isinstance(message, Stop):
                stop.set()
            else:
                stop.clear()  # one that came too late for the point before
                wishes.put(message)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
