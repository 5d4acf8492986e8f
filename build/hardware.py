"""What this machine is: the hardware a plan is made for and a manifest records."""

from __future__ import annotations

import platform
import resource
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

__all__ = ["Hardware", "this_machine"]


class Hardware(BaseModel):
    """One device to run on. ``free_memory`` is what a process may still take, in bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: str
    """``cpu`` or ``cuda``."""
    cores: int
    total_memory: int
    free_memory: int


def this_machine() -> Hardware:
    """The CPU of this machine, with memory limits of this process (rlimit and cgroup) counted in."""
    memory = psutil.virtual_memory()
    limits = [memory.total, *_limits()]
    return Hardware(
        name=_cpu_name(),
        kind="cpu",
        cores=len(psutil.Process().cpu_affinity()),
        total_memory=min(limits),
        free_memory=min([memory.available, *_limits()]),
    )


def _limits() -> list[int]:
    found = []
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        found.append(soft)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return found


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
