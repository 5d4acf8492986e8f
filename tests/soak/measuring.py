"""What a soak looks at: pages, processes, shared memory, and whether memory stays flat."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

__all__ = ["Memory", "flatness_problem", "metrics_of", "name_of", "shared_memory", "stack"]

_SAMPLE = re.compile(r'^(roundhouse_\w+)\{model="([^"]*)"\} (\S+)$', re.MULTILINE)
_WARM = 0.2
"""The first part of a run, in which caches fill and allocators find their size."""


async def metrics_of(client: httpx.AsyncClient, url: str) -> dict[str, dict[str, float]]:
    """Our metrics by model."""
    found: dict[str, dict[str, float]] = {}
    for name, model, value in _SAMPLE.findall((await client.get(url)).text):
        found.setdefault(model, {})[name.removeprefix("roundhouse_")] = float(value)
    return found


def stack() -> dict[str, psutil.Process]:
    """The processes of the deployment that this process owns, each by a name that a restart does not change."""
    found: dict[str, psutil.Process] = {}
    for process in psutil.Process().children(recursive=True):
        try:
            command = process.cmdline()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        if (name := name_of(command)) is not None:
            found[name] = process
    found["front and clients"] = psutil.Process()
    return found


def name_of(command: Sequence[str]) -> str | None:
    """What a process of the deployment is called, by its command line; None for others.

    A process that is just starting or ending may show only the beginning of its command line.
    """
    match list(command):
        case [program, *_] if program.endswith("bin/tritonserver"):
            return "triton"
        case [program, model, *_] if program.endswith("/triton_python_backend_stub"):
            return f"stub {Path(model).parents[1].name}"  # .../MODEL/VERSION/model.py
        case [_, "-P", "-m", "roundhouse.serve.process.main", "--engine", engine, *_]:
            return f"engine {Path(engine).name}"
    return None


def shared_memory() -> int:
    """Regions of shared memory that this process's deployment holds."""
    return len(list(Path("/dev/shm").glob(f"roundhouse_{os.getpid()}_*")))


@dataclass
class Memory:
    """Resident bytes of some processes over a run."""

    series: dict[str, list[int]] = field(default_factory=dict)

    def sample(self, processes: dict[str, psutil.Process]) -> None:
        """Look at each process that is there."""
        for name, process in processes.items():
            try:
                self.series.setdefault(name, []).append(process.memory_info().rss)
            except psutil.NoSuchProcess:
                continue

    def summary(self) -> dict[str, Any]:
        """Megabytes when warm and at the end, by process."""
        return {
            name: {"warm": _mib(_median(_part(s, 0))), "end": _mib(_median(_part(s, 1)))} for name, s in self.series.items()
        }


def flatness_problem(name: str, series: Sequence[int], *, most: int) -> str | None:
    """What to say when a process grew by more than ``most`` bytes from the time it was warm to the end; None when not.

    Medians of a tenth of the run each, so that one moment's peak says nothing.
    """
    warm, end = _median(_part(series, 0)), _median(_part(series, 1))
    return f"{name} grew from {_mib(warm)} to {_mib(end)} MiB" if end - warm > most else None


def _part(series: Sequence[int], which: int) -> Sequence[int]:
    """The tenth of a run after its warming up (0), or its last tenth (1)."""
    tenth = max(1, len(series) // 10)
    start = min(int(len(series) * _WARM), len(series) - tenth)
    return series[start : start + tenth] if which == 0 else series[-tenth:]


def _median(values: Sequence[int]) -> int:
    return sorted(values)[len(values) // 2]


def _mib(size: int) -> float:
    return round(size / 2**20, 1)
