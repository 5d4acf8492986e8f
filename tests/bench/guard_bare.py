"""The bare check: the comparison alone, called from Python as the loop calls it, on tables in which every tag agrees."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch

from roundhouse.errors import ServeError
from roundhouse.plugins.native_guard import CpuGuard, FirstBad
from roundhouse.plugins.torch_guard import torch_page_guard

__all__ = ["SIZES", "Bare", "bare"]

SIZES = ((64, 4096), (64, 64), (8, 64))
"""Requests, and pages of each."""
_WARM_CALLS = 10


@dataclass(frozen=True)
class Bare:
    """Many calls of one guard on one batch."""

    guard: str
    rows: int
    columns: int
    threads: int
    median_us: float
    least_us: float


def bare(kernels: ctypes.CDLL, *, calls: int, clock: Callable[[], float] = time.perf_counter) -> list[Bare]:
    """Time the native guard and plain torch's at every size, on one thread and on as many as torch has.

    Args:
        kernels: the native ones.
        calls: of each.
        clock: seconds that never go back.

    Raises:
        ServeError: a guard found a fault where there is none.
    """
    guards: dict[str, FirstBad] = {"native": CpuGuard(kernels), "torch": torch_page_guard}
    results = []
    for rows, columns in SIZES:
        tables = _tables(rows, columns)
        for name, guard in guards.items():
            for threads in sorted({1, torch.get_num_threads()}):
                with _threads(threads):
                    us = _times(guard, tables, calls, clock)
                results.append(Bare(name, rows, columns, threads, median(us), min(us)))
    return results


def _times(guard: FirstBad, tables: tuple[torch.Tensor, ...], calls: int, clock: Callable[[], float]) -> list[float]:
    """Microseconds of each call."""
    for _ in range(_WARM_CALLS):
        if not bool((guard(*tables) == -1).all()):
            raise ServeError(
                "the page guard found a fault in tables without one", hint="Nothing it measures would mean anything."
            )
    us = []
    for _ in range(calls):
        began = clock()
        guard(*tables)
        us.append((clock() - began) * 1e6)
    return us


def _tables(rows: int, columns: int) -> tuple[torch.Tensor, ...]:
    """Every request has pages of its own, in random order: no tag is near the last one's, and none is used twice."""
    draw = np.random.default_rng(0)
    table = draw.permutation(rows * columns).astype(np.int32).reshape(rows, columns)
    tags = draw.permutation(rows * columns).astype(np.int32) + 1
    count = np.full(rows, columns, dtype=np.int32)
    return tuple(torch.from_numpy(each) for each in (table, count, tags[table], tags))


@contextmanager
def _threads(threads: int) -> Iterator[None]:
    """So many threads for torch, and for the native guard, which has the same OpenMP."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
