"""Load on a bare engine loop: no server, no network, in a process of its own that ends with this one."""

from __future__ import annotations

import contextlib
import queue
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec

from roundhouse import __version__
from roundhouse.build.engine import Engine
from roundhouse.errors import BenchmarkStoppedError, ServeError

from ..disk import writing
from ..last_words import LastWords
from ..leftovers import own_folder
from ..runtimes.tensorrt_llm.launch import launch_words
from ..settings import EngineSettings
from ..triton.samples import Sample
from .driver import Measured, PointWish
from .loop_messages import Broken, Done, FromLoop, Measure, Ready, Stop, Told, ToLoop
from .measuring import MeasuredRequest
from .records import Driver

__all__ = ["LoopDriver"]

_POLL_S = 0.1
_STOP_GRACE_S = 10.0
"""A step that has begun is waited for: so that its pages come back, and the process could be asked again."""
_REQUESTS = "requests.jsonl"


class LoopDriver:
    """An engine in a child process, asked without a server between. It is also the source of what the engine counts.

    Args:
        engine: what to load.
        settings: how to run it.
        stop: gives up loading when it is set.
    """

    name: Driver = "loop"
    version: str | None = __version__

    def __init__(
        self,
        engine: Engine,
        settings: EngineSettings,
        *,
        stop: threading.Event | None = None,
    ) -> None:
        folder = engine.folder.resolve()
        self._command = [*launch_words(folder, sys.executable), "-m", "roundhouse.serve.benchmark.loop_process"]
        self._command += ["--engine", str(folder), "--settings", settings.model_dump_json()]
        self._stop = stop or threading.Event()
        self._answers = queue.SimpleQueue[Ready | Done | Broken | None]()
        self._samples: deque[Sample] = deque()
        self._words = LastWords()
        self._encode = msgspec.json.Encoder().encode
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: list[threading.Thread] = []
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        """Load the engine.

        Raises:
            ServeError: it could not be loaded.
            BenchmarkStoppedError: it was to stop meanwhile.
        """
        # A session of its own: Ctrl-C in a terminal is for us to handle, in order.
        self._process = process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._readers = [threading.Thread(target=each, args=(process,), daemon=True) for each in (self._hear, self._overhear)]
        for reader in self._readers:
            reader.start()
        try:
            self._folder = own_folder("what a benchmark's engine loop measures")
            self._answer(self._stop, patience_s=0.0)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def measure(self, wish: PointWish, stop: threading.Event) -> Measured:
        self._say(
            Measure(
                workload=wish.workload.model_dump(mode="json"),
                concurrency=wish.concurrency,
                requests=wish.requests,
                seed=wish.seed,
                timeout_s=wish.timeout_s,
            )
        )
        answer = self._answer(stop, patience_s=_STOP_GRACE_S)
        requests = answer.requests if isinstance(answer, Done) else []
        return Measured(requests=requests, tokens_from="engine", files=self._written(requests))

    def take(self) -> list[Sample]:
        """What the engine told of its counts since this was asked last."""
        taken = []
        with contextlib.suppress(IndexError):
            while True:
                taken.append(self._samples.popleft())
        return taken

    def close(self) -> None:
        """End the process. May be called twice."""
        process, self._process = self._process, None
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if process is None:
            return
        with contextlib.suppress(BrokenPipeError):
            if process.stdin is not None:
                process.stdin.close()
        process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def _written(self, requests: Sequence[MeasuredRequest]) -> tuple[tuple[str, Path], ...]:
        """Single requests as a raw file, one a line, in the order in which they ended."""
        if self._folder is None:
            raise ServeError("the engine is not loaded")
        path = self._folder / _REQUESTS
        with writing("single requests", self._folder):
            path.write_bytes(b"".join(self._encode(each) + b"\n" for each in requests))
        return ((_REQUESTS, path),)

    def _say(self, message: ToLoop) -> None:
        if self._process is None or self._process.stdin is None:
            raise ServeError("the engine is not loaded")
        with contextlib.suppress(BrokenPipeError):  # it has ended: the missing answer says so
            self._process.stdin.write(self._encode(message) + b"\n")
            self._process.stdin.flush()

    def _answer(self, stop: threading.Event, *, patience_s: float) -> Ready | Done:
        """Wait for an answer.

        Raises:
            ServeError: the process ended instead.
            BenchmarkStoppedError: ``stop`` was set; it has been told so, and had ``patience_s`` seconds to end its point.
        """
        while not stop.is_set():
            with contextlib.suppress(queue.Empty):
                return self._whole(self._answers.get(timeout=_POLL_S))
        self._say(Stop())
        if patience_s:
            with contextlib.suppress(queue.Empty):
                self._answers.get(timeout=patience_s)
        raise BenchmarkStoppedError("the benchmark was stopped")

    def _whole(self, answer: Ready | Done | Broken | None) -> Ready | Done:
        if isinstance(answer, Broken):
            raise ServeError(answer.message, hint=answer.hint)
        if answer is None:
            self._readers[-1].join(timeout=1.0)
            last = f": {self._words.text}" if self._words.text else ""
            raise ServeError(f"the engine's process ended{last}")
        return answer

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        """Sort what the process says, in a thread of its own."""
        decode = msgspec.json.Decoder(FromLoop).decode
        with contextlib.suppress(msgspec.DecodeError):  # half a message, of one that was killed while it said it
            for line in process.stdout or ():
                message = decode(line)
                if isinstance(message, Told):
                    self._samples.append(Sample.model_validate(message.sample))
                else:
                    self._answers.put(message)
        self._answers.put(None)

    def _overhear(self, process: subprocess.Popen[bytes]) -> None:
        for line in process.stderr or ():
            if words := line.decode(errors="replace").strip():
                self._words.hear(words)
