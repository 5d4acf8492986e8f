"""Threads of a process that runs an engine. Nothing here imports torch, for OpenMP reads this when torch is first imported."""

from __future__ import annotations

import os

from roundhouse.build.hardware import usable_cores

__all__ = ["SPIN_COUNT", "prepare_threads"]

SPIN_COUNT = "3000"
"""How often OpenMP's threads look again before they sleep (``GOMP_SPINCOUNT``)."""


def prepare_threads() -> None:
    """Set how many threads compute, and how they wait, unless the environment says so. Call it before torch is imported.

    A step has hundreds of parallel regions. Threads that sleep at once between them make a small one take three times as
    long; threads that spin for long collapse (a hundred times as long) once the server and its clients share the cores.
    So they spin for about as long as waking takes: what OpenMP itself does where threads outnumber cores. (libgomp, which
    torch brings, reads it; other OpenMPs do not.)
    """
    os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
    os.environ.setdefault("OMP_NUM_THREADS", str(usable_cores()))
