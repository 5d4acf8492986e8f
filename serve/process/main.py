"""The engine process: ``python -m roundhouse.serve.process.main --engine DIR --sockets DIR``.

Its parent holds the other end of its standard input. When that pipe closes, for whatever reason, the
process ends at once: a killed parent never leaves weights and threads behind. A start that fails
for a reason the user can change ends with one line on standard error and exit code 1. Under ``mpirun`` rank 0 is this process,
and the others follow it: their life ends with it, as MPI sees to, and with ``mpirun``'s, which each of them watches.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from pathlib import Path

import msgspec
import zmq
from pydantic import ValidationError

from roundhouse.build.engine import Engine
from roundhouse.errors import RoundhouseError, UsageError

from ..free_memory import free_memory_for
from ..last_words import failure_line
from ..runtimes.tensorrt_llm.follower import run_follower
from ..runtimes.tensorrt_llm.launch import is_follower
from ..settings import EngineSettings, Overrides
from ..threads import prepare_threads
from .messages import FromClient, FromEngine, Ready
from .service import Service

__all__ = ["OUTPUTS", "REQUESTS", "main"]

REQUESTS = "requests"
OUTPUTS = "outputs"
"""Names of the two sockets in the sockets folder."""

_START_FAILED = 1


def main(arguments: list[str] | None = None) -> int:
    """Run the engine process, or another rank of its engine; rank 0 returns only when it could not start."""
    options = _parse(arguments)
    if is_follower(options.engine):
        return run_follower(options.engine)
    _end_with_parent()
    prepare_threads()
    context = zmq.Context()
    inbox, outbox = _Inbox(context, options.sockets / REQUESTS), _Outbox(context, options.sockets / OUTPUTS)
    try:
        engine = Engine.open(options.engine)
        with engine.held():  # while this process lives, nobody removes the engine
            _load(engine, options.settings, inbox, outbox).run()
    except RoundhouseError as error:
        sys.stderr.write(failure_line(error))
    return _START_FAILED


def _load(engine: Engine, settings_json: str, inbox: _Inbox, outbox: _Outbox) -> Service:
    """Load the engine, say that it is ready."""
    from ..runtimes import create_loop, fitted_settings, require_runnable

    require_runnable(engine)
    overrides = _overrides(settings_json)
    settings = fitted_settings(engine, EngineSettings.for_engine(engine, overrides, free_memory=free_memory_for(engine)))
    loop = create_loop(engine, settings)
    loop.prepare()
    ready = Ready(
        engine_id=engine.manifest.id,
        pages=settings.kv.pages,
        page_tokens=settings.page_tokens,
        max_seq_len=settings.max_seq_len,
        guard=settings.guard,
    )
    outbox.send(ready)
    return Service(loop, inbox, outbox.send)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m roundhouse.serve.process.main", description="The engine process.")
    parser.add_argument("--engine", type=Path, required=True, help="engine folder")
    parser.add_argument("--sockets", type=Path, required=True, help="folder for the two sockets")
    parser.add_argument("--settings", default="{}", help="overrides of the engine's recipe, as a JSON object")
    return parser.parse_args(arguments)


def _overrides(settings_json: str) -> Overrides:
    try:
        return Overrides.model_validate_json(settings_json)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "--settings"
        raise UsageError(f"settings: {where}: {first['msg']}") from None


def _end_with_parent() -> None:
    """End this process, from a thread of its own, when standard input reaches its end."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


class _Inbox:
    """The socket that requests arrive on."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], path: Path) -> None:
        self._socket = context.socket(zmq.PULL)
        self._socket.set_hwm(0)
        self._socket.bind(f"ipc://{path}")
        self._decoder = msgspec.msgpack.Decoder(FromClient)

    def take(self, timeout_s: float) -> FromClient | None:
        if not self._socket.poll(int(timeout_s * 1000)):
            return None
        return self._decoder.decode(self._socket.recv())


class _Outbox:
    """The socket that outputs leave by. Unbounded: the engine never waits for a slow reader."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], path: Path) -> None:
        self._socket = context.socket(zmq.PUSH)
        self._socket.set_hwm(0)
        self._socket.bind(f"ipc://{path}")
        self._encoder = msgspec.msgpack.Encoder()

    def send(self, message: FromEngine) -> None:
        self._socket.send(self._encoder.encode(message))


if __name__ == "__main__":
    sys.exit(main())
