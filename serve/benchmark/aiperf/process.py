"""One run of aiperf: a process that ends with us, when it is told to, or when it takes too long."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from roundhouse.errors import BenchmarkStoppedError, ServeError

from ...process.tethered import TetheredProcess

__all__ = ["run_aiperf", "what_went_wrong"]

_LOOK_EVERY_S = 0.1
_LINES = 2000
_ERROR_LINE = re.compile(r"^[\d:. -]+\s(?:ERROR|CRITICAL)\s+(?P<said>.*?)(?:\s+\(\w+\.py:\d+\))?$")
_BOX = re.compile(r"^[│╭╰╮╯─\s]*|[│╭╰╮╯─\s]*$")


def run_aiperf(
    executable: Path,
    config: Path,
    environment: Mapping[str, str],
    stop: threading.Event,
    longest_s: float,
    *,
    hide: Callable[[str], str] = str,
) -> tuple[int, list[str]]:
    """Run ``aiperf profile`` to its end.

    Args:
        executable: aiperf.
        config: its configuration.
        environment: all of its environment variables.
        stop: ends it at once, with all processes that it started.
        longest_s: how long it may take before it counts as stuck.
        hide: takes what must not be repeated out of a line that it printed.

    Returns:
        Its exit code, and the last 2,000 lines that it printed.

    Raises:
        BenchmarkStoppedError: ``stop`` was set.
        ServeError: it took too long.
    """
    lines: deque[str] = deque(maxlen=_LINES)
    command = [str(executable), "profile", "--config", str(config)]
    process = TetheredProcess(command, environment, lambda line: lines.append(hide(line)))
    try:
        deadline = time.monotonic() + longest_s
        while process.exit_code is None:
            if stop.wait(_LOOK_EVERY_S):
                raise BenchmarkStoppedError("the benchmark was stopped")
            if time.monotonic() > deadline:
                raise ServeError(f"aiperf did not end within {longest_s:.0f} s; last it said: {what_went_wrong(lines)}")
    finally:
        process.close()
    return process.exit_code, list(lines)


def what_went_wrong(lines: list[str] | deque[str]) -> str:
    """What aiperf said about it, on one line: its first error, as those after it follow from that."""
    for line in lines:
        error = _ERROR_LINE.match(line)
        if error is not None:
            return error["said"]
    framed = [_BOX.sub("", line) for line in lines if line.startswith("│")]
    if framed:
        return " ".join(each for each in framed if each)[:500]
    said = [line.strip() for line in lines if line.strip()]
    return said[-1] if said else "nothing"
