"""Which process it is: its number comes again, its number with the moment of its start does not."""

from __future__ import annotations

from pathlib import Path

__all__ = ["process_start"]


def process_start(pid: int) -> int | None:
    """When a process was started, in clock ticks since the machine was; None when it has ended.

    Ticks, not the time of day: that moves when the clock is set.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # the name may hold anything
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])
