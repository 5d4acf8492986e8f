"""Processes of TensorRT-LLM's Python, one on each GPU at a time; what they say is read line by line."""

from __future__ import annotations

import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from roundhouse.errors import BuildError

__all__ = ["Child", "run_children"]

_KEPT_LINES = 30
"""Of a child's last words, for the error that it ends with."""
_PATIENCE = 10.0
"""Seconds that a child has to end when it is asked to, and that its last words have to arrive after it ended."""


@dataclass(frozen=True)
class Child:
    """A process to run."""

    name: str
    """Such as ``rank 3``."""
    command: Sequence[str | Path]
    folder: Path
    """It starts there: libraries leave files where they stand."""
    environment: Mapping[str, str]


@dataclass
class _Running:
    child: Child
    process: subprocess.Popen[str]
    device: str
    reader: threading.Thread
    last: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))


def run_children(children: Sequence[Child], devices: Sequence[str], on_line: Callable[[str, str], None]) -> None:
    """Run all of them, at most one on each device.

    Args:
        children: to run, in this order.
        devices: as CUDA_VISIBLE_DEVICES names them; a child sees its own only.
        on_line: told a child's name and each line of what it says, in the thread that called.

    Raises:
        BuildError: one of them failed, with its last words. The others are ended.
    """
    lines: SimpleQueue[tuple[str, str | None]] = SimpleQueue()
    waiting, free, running = deque(children), list(devices), dict[str, _Running]()
    try:
        while waiting or running:
            while waiting and free:
                each = _start(waiting.popleft(), free.pop(0), lines)
                running[each.child.name] = each
            name, line = lines.get()
            if name not in running:
                continue  # what a process that a child left behind still says
            if line is not None:
                running[name].last.append(line)
                on_line(name, line)
                continue
            ended = running.pop(name)
            free.append(ended.device)
            if code := ended.process.wait():
                raise BuildError(f"{name} failed ({_how(code)}); its last words:\n" + "\n".join(ended.last))
    finally:
        for each in running.values():
            each.process.terminate()
        for each in running.values():
            _end(each)


def _start(child: Child, device: str, lines: SimpleQueue[tuple[str, str | None]]) -> _Running:
    # In this process group: who ends a build ends its children.
    process = subprocess.Popen(
        [str(word) for word in child.command],
        cwd=child.folder,
        env={**child.environment, "CUDA_VISIBLE_DEVICES": device},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )

    def read(pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                lines.put((child.name, line.rstrip()))

    reader = threading.Thread(target=read, args=(process.stdout,), name=child.name, daemon=True)

    def wait() -> None:
        process.wait()
        # The pipe stays open as long as a process that the child started holds it: that one is not waited for.
        reader.join(_PATIENCE)
        lines.put((child.name, None))

    reader.start()
    threading.Thread(target=wait, name=f"{child.name}'s end", daemon=True).start()
    return _Running(child, process, device, reader)


def _end(running: _Running) -> None:
    try:
        running.process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        running.process.kill()
        running.process.wait()
    running.reader.join(_PATIENCE)


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
