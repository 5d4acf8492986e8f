"""A console as `roundhouse console` runs it, in a process of its own, with a worker beside it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

__all__ = ["PATIENCE_S", "RealConsole", "wait_until"]

PATIENCE_S = 120.0
"""Only a console that hangs takes as long."""


def wait_until(condition: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for something that happens in another process."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience_s:.0f} s for {what}"
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


class RealConsole:
    """The process, what it printed, and where it answers."""

    def __init__(self, home: Path, *options: str) -> None:
        self.home = home
        self.lines: list[str] = []
        self._options = options
        self._port = _free_port()  # the same after a restart
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "roundhouse", "console", "--home", str(self.home), "--port", str(self._port)]
        self.lines = []
        self._process = subprocess.Popen(
            [*command, *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        wait_until(lambda: self._find(r"console: (\S+)") or self._process_ended(), "the console")
        assert self._find(r"console: (\S+)"), "\n".join(self.lines)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it: with SIGKILL as abruptly as can be."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        self._process.wait(timeout=PATIENCE_S)
        self._process = None

    @property
    def process(self) -> psutil.Process:
        """It itself, to look at."""
        assert self._process is not None
        return psutil.Process(self._process.pid)

    @property
    def url(self) -> str:
        """Where it answers."""
        found = self._find(r"console: (\S+)")
        assert found is not None
        return found

    @property
    def first_link(self) -> str:
        """The link that makes the first account."""
        found = self._find(r"first account: (\S+)")
        assert found is not None, "\n".join(self.lines)
        return found

    def _find(self, pattern: str) -> str | None:
        return next((found[1] for line in list(self.lines) if (found := re.search(pattern, line))), None)

    def _process_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self.lines.append(line.rstrip())
                sys.stdout.write(f"{self.lines[-1]}\n")  # is shown with a test that fails
