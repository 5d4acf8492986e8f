"""What this machine is: the hardware a plan is made for and a manifest records."""

from __future__ import annotations

import math
import platform
import resource
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

__all__ = ["Hardware", "this_machine", "usable_cores"]

_CGROUP_FILES = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)
_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of processor time in each period, and the period; ``max`` where there is no limit (cgroup v2)."""
_CPU_QUOTA_V1 = (Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us"))
_BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}
"""x86 (the first two) and Arm flags of CPUs with bf16 products."""


class Hardware(BaseModel):
    """One device to run on: ``free_memory`` bytes may still be taken; ``cores`` is 0 where it is not a CPU."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: str
    """``cpu`` or ``cuda``."""
    cores: int
    total_memory: int
    free_memory: int
    native_bf16: bool = False
    """Whether it computes in bf16 itself; a CPU that emulates it is several times slower than in float32."""
    compute_capability: str | None = None
    """Of an NVIDIA GPU, such as ``9.0``; None for a CPU."""
    bandwidth: float | None = None
    """Bytes a second between memory and cores, as data sheets give it; None when it is not known."""
    unverified: tuple[str, ...] = ()
    """Which of these numbers are from memory and not from a data sheet."""


def this_machine() -> Hardware:
    """The CPU of this machine, with memory limits of this process (rlimit and cgroup) counted in."""
    memory = psutil.virtual_memory()
    limits = _limits()
    return Hardware(
        name=_cpu_name(),
        kind="cpu",
        cores=usable_cores(),
        total_memory=min([memory.total, *(limit for limit, _ in limits)]),
        free_memory=max(0, min([memory.available, *(limit - used for limit, used in limits)])),
        native_bf16=bool(_BF16_FLAGS & _cpu_flags()),
    )


def usable_cores() -> int:
    """Cores that this process may keep busy: those it may run on, and no more than its cgroup has processor time for."""
    allowed = len(psutil.Process().cpu_affinity())
    quota, period = _cpu_quota()
    return allowed if quota is None or not period else max(1, min(allowed, math.ceil(quota / period)))


def _cpu_quota() -> tuple[int | None, int | None]:
    try:
        quota, period = _CPU_QUOTA.read_text().split()
    except (OSError, ValueError):
        return _number(_CPU_QUOTA_V1[0]), _number(_CPU_QUOTA_V1[1])  # -1 without a limit, which is no number
    return (int(quota) if quota.isdigit() else None), int(period)


def _limits() -> list[tuple[int, int]]:
    """(limit, already used) of everything that bounds this process's memory, in bytes."""
    found = []
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        found.append((soft, psutil.Process().memory_info().vms))
    for limit_file, used_file in _CGROUP_FILES:
        limit, used = _number(limit_file), _number(used_file)
        if limit is not None:
            # What the kernel holds in its file cache it gives back when asked.
            found.append((limit, max(0, (used or 0) - _cached(limit_file.with_name("memory.stat")))))
    return found


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _cached(stat: Path) -> int:
    """Bytes of file cache that a cgroup can give back."""
    try:
        lines = dict(line.split() for line in stat.read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(lines.get("inactive_file", lines.get("total_inactive_file", 0)))


def _cpu_name() -> str:
    return _cpu_line("model name") or platform.processor() or platform.machine()


def _cpu_flags() -> set[str]:
    return set((_cpu_line("flags") or _cpu_line("Features") or "").split())


def _cpu_line(key: str) -> str | None:
    """What ``/proc/cpuinfo`` says of the first core under this key, or None."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    return next((value.strip() for name, _, value in (line.partition(":") for line in lines) if name.strip() == key), None)
