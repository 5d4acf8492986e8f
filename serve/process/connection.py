"""One run of the engine process: its pipes, its two sockets and what it said last."""

from __future__ import annotations

import math
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import zmq

from roundhouse.errors import ServeError

from ..last_words import LastWords
from .messages import FromClient, FromEngine

__all__ = ["EngineConnection"]

_MOST_AT_ONCE = 1024
"""Messages taken before any of them is looked at, however fast they come."""


class EngineConnection:
    """Starts the process and talks to it. ``send`` may be called from any thread, ``receive`` from one.

    Args:
        command: the process to start, which binds ``requests`` and ``outputs`` in ``sockets``.
        sockets: an existing, private folder.
        on_log: gets each line that the process prints. Must not raise: the process stops when nobody reads it.

    Raises:
        ServeError: the command cannot be run.
    """

    def __init__(self, command: Sequence[str], sockets: Path, on_log: Callable[[str], None]) -> None:
        self._process = _spawn(command)
        self._sending = threading.Lock()
        self._closed = False
        self._words = LastWords()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._requests = self._connect(zmq.PUSH, sockets / "requests")
        self._outputs = self._connect(zmq.PULL, sockets / "outputs")
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(FromEngine)
        self._relay = threading.Thread(target=self._relay_output, args=(on_log,), name="engine-log", daemon=True)
        self._relay.start()

    @property
    def pid(self) -> int:
        """Process id of the engine process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    @property
    def last_words(self) -> str:
        """Why it could not go on, else the last line that the process printed, or how it ended when it printed none."""
        self._relay.join(timeout=1.0)
        return self._words.text or f"it ended with code {self._process.returncode} and said nothing"

    def send(self, message: FromClient) -> None:
        """Queue a message. Never blocks; what a dead process does not read is lost."""
        with self._sending:
            if not self._closed:
                self._requests.send(self._encoder.encode(message))

    def receive(self, timeout_s: float) -> list[FromEngine]:
        """Every message that has arrived, in order; none when none arrives within ``timeout_s`` seconds.

        Raises:
            ServeError: what arrived is no message; the process cannot be trusted any more.
        """
        messages: list[FromEngine] = []
        if self._outputs.poll(math.ceil(timeout_s * 1000)):
            try:
                while len(messages) < _MOST_AT_ONCE:
                    messages.append(self._decoder.decode(self._outputs.recv(zmq.NOBLOCK)))
            except zmq.Again:
                pass
            except msgspec.DecodeError as error:
                raise ServeError(f"the engine process sent what is no message: {error}") from None
        return messages

    def end(self) -> None:
        """Close the pipe that the process watches; it ends at once."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def close(self, grace_s: float) -> None:
        """End the process, kill it after ``grace_s`` seconds if it lingers, and drop the sockets."""
        self.end()
        deadline = time.monotonic() + grace_s
        try:
            self._process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._relay.join(timeout=1.0)
        with self._sending:
            self._closed = True
            self._requests.close(linger=0)
        self._outputs.close(linger=0)
        self._context.term()

    def _connect(self, kind: zmq.SocketType, path: Path) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.set_hwm(0)
        socket.connect(f"ipc://{path}")
        return socket

    def _relay_output(self, on_log: Callable[[str], None]) -> None:
        if self._process.stdout is None:
            return
        with self._process.stdout as lines:
            for line in lines:
                self._words.hear(line.rstrip())
                on_log(line.rstrip())


def _spawn(command: Sequence[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True, errors="replace")
    except OSError as error:
        raise ServeError(f"{command[0]} could not be started: {error.strerror}") from None
