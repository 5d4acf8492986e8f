"""Whether the engine behind Triton is fit to serve, read from Triton's metrics.

Triton calls a model ready from its load to its unload, whatever has become of the engine process.
"""

from __future__ import annotations

import re

from ..triton.health import DOWN, STUCK, UNGUARDED, silent
from ..triton.metrics import ENGINE_UP, GUARD_ALIVE, PAGES, PAGES_QUARANTINED, STATUS_TIME, TOKENS_COME_OUT

__all__ = ["engine_problem"]

_MOST_QUARANTINED = 0.05
_SAMPLE = re.compile(r'^(roundhouse_\w+)\{model="([^"]*)"\} (\S+)$', re.MULTILINE)


def engine_problem(metrics: str, model: str, now: float) -> str | None:
    """Why the engine should get no requests, or None when nothing speaks against it.

    Args:
        metrics: Triton's metrics in Prometheus' text form.
        model: the one it is about.
        now: Unix time, in seconds.
    """
    found = {name: float(value) for name, labelled, value in _SAMPLE.findall(metrics) if labelled == model}
    if found.get(ENGINE_UP) != 1.0:
        return DOWN
    if found.get(TOKENS_COME_OUT) != 1.0:
        return STUCK
    if found.get(GUARD_ALIVE) != 1.0:
        return UNGUARDED
    if problem := silent(now - found.get(STATUS_TIME, 0.0)):
        return problem
    pages, quarantined = sum(found.get(name, 0.0) for name in PAGES), found.get(PAGES_QUARANTINED, 0.0)
    if quarantined > _MOST_QUARANTINED * pages:
        return f"{quarantined:.0f} of {pages:.0f} KV pages are quarantined; the engine must be restarted"
    return None
