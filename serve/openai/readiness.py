"""Whether the engine behind Triton is fit to serve, read from Triton's metrics.

Triton calls a model ready from its load to its unload, whatever has become of the engine process.
"""

from __future__ import annotations

import re

from ..triton.metrics import ENGINE_UP, PAGES, PAGES_QUARANTINED, STATUS_TIME

__all__ = ["engine_problem"]

_LONGEST_SILENCE_S = 30.0
"""Longer than any one step should take: the engine process reports between steps."""
_MOST_QUARANTINED = 0.05
_SAMPLE = re.compile(r"^(roundhouse_\w+)\{[^}]*\} (\S+)$", re.MULTILINE)


def engine_problem(metrics: str, now: float) -> str | None:
    """Why the engine should get no requests, or None when nothing speaks against it.

    Args:
        metrics: Triton's metrics in Prometheus' text form; one model is loaded.
        now: Unix time, in seconds.
    """
    found = {name: float(value) for name, value in _SAMPLE.findall(metrics)}
    if found.get(ENGINE_UP) != 1.0:
        return "the engine process is down"
    silence = now - found.get(STATUS_TIME, 0.0)
    if silence > _LONGEST_SILENCE_S:
        return f"the engine process has not reported for {silence:.0f} s"
    pages, quarantined = sum(found.get(name, 0.0) for name in PAGES), found.get(PAGES_QUARANTINED, 0.0)
    if quarantined > _MOST_QUARANTINED * pages:
        return f"{quarantined:.0f} of {pages:.0f} KV pages are quarantined; the engine must be restarted"
    return None
