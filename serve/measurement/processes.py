"""How busy a machine was, and by whom: processor time of the whole machine, and of the processes that belong together."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from .endpoints import port_of

__all__ = ["CpuTimes", "Family", "families_at", "look"]

_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
"""What counts as work; steal is what other machines on the same host took."""


@dataclass(frozen=True)
class CpuTimes:
    """Seconds, each since some beginning of its own."""

    wall: float
    machine: float
    """Of all cores, busy with anything."""
    ours: float
    """Of these, with what belongs to the measurement."""

    def others(self, after: CpuTimes) -> float:
        """Cores that others kept busy from this moment to a later one."""
        taken = (after.machine - self.machine) - (after.ours - self.ours)
        return max(0.0, taken / (after.wall - self.wall))


@dataclass(frozen=True)
class Family:
    """Processes that started elsewhere and belong to a measurement: each of ``roots``, their process groups, and
    everything that any of these has started.
    """

    roots: tuple[int, ...] = ()

    def members(self) -> set[psutil.Process]:
        """Those that live now."""
        groups = {group for root in self.roots if (group := _group_of(root)) is not None}
        members: set[psutil.Process] = set()
        for pid in psutil.pids() if groups else ():
            if pid in self.roots or _group_of(pid) in groups:
                members |= _with_descendants(pid)
        return members


def look(families: Iterable[Family] = ()) -> CpuTimes:
    """The times as of now. This process and everything it has started is ours, what has ended meanwhile included.

    Args:
        families: what is ours as well.
    """
    machine = psutil.cpu_times()
    ours = _with_descendants(os.getpid()).union(*(family.members() for family in families))
    return CpuTimes(
        wall=time.monotonic(),
        machine=sum(getattr(machine, name, 0.0) for name in _BUSY),
        ours=sum(_taken(process) for process in ours),
    )


def families_at(urls: Iterable[str]) -> tuple[Family, ...] | None:
    """The processes that answer at URLs on this machine.

    Returns:
        None when one of them has a listener that cannot be found, or whose times we may not read.
    """
    try:
        listening = [each for each in psutil.net_connections(kind="tcp") if each.status == psutil.CONN_LISTEN]
    except (psutil.Error, OSError):
        return None
    roots = set()
    for port in {port_of(url) for url in urls}:
        found = {each.pid for each in listening if each.laddr and each.laddr.port == port}
        if not found or None in found:
            return None
        roots |= {pid for pid in found if pid is not None}
    family = Family(tuple(sorted(roots)))
    return (family,) if family.members() else None


def _with_descendants(pid: int) -> set[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return {process, *process.children(recursive=True)}
    except psutil.Error:
        return set()


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _taken(process: psutil.Process) -> float:
    """Seconds that a process took, with those of its children that have ended: a driver may come and go meanwhile."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
