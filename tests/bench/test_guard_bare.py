"""The bare check: which guards are called, on what, how often and on how many threads."""

from __future__ import annotations

import ctypes
import sys
from itertools import count
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
import guard_bare
from guard_bare import Bare, bare

from roundhouse.errors import ServeError
from roundhouse.plugins.torch_guard import torch_page_guard


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[int, ...], int]]:
    """Guards that note their calls: which, on a table of what shape, on how many threads."""
    calls: list[tuple[str, tuple[int, ...], int]] = []

    def noting(name: str):
        def guard(*tables: torch.Tensor) -> torch.Tensor:
            calls.append((name, tuple(tables[0].shape), torch.get_num_threads()))
            return torch_page_guard(*tables)

        return guard

    monkeypatch.setattr(guard_bare, "CpuGuard", lambda kernels: noting("native"))
    monkeypatch.setattr(guard_bare, "torch_page_guard", noting("torch"))
    return calls


def test_every_guard_is_called_at_every_size_on_one_thread_and_on_all(called, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ((4, 6), (2, 3))
    monkeypatch.setattr(guard_bare, "SIZES", sizes)
    torch.set_num_threads(2)
    ticks = count()
    told = bare(ctypes.CDLL(None), calls=3, clock=lambda: float(next(ticks)))
    cases = [(name, size, threads) for size in sizes for name in ("native", "torch") for threads in (1, 2)]
    assert told == [Bare(name, *size, threads, 1e6, 1e6) for name, size, threads in cases]
    assert list(dict.fromkeys(called)) == cases
    assert len(called) == len(cases) * (guard_bare._WARM_CALLS + 3)
    assert torch.get_num_threads() == 2


def test_median_and_least_are_of_all_calls(called, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_bare, "SIZES", ((2, 3),))
    times = iter([0, 5, 5, 6, 6, 9] * 4)
    told = bare(ctypes.CDLL(None), calls=3, clock=lambda: float(next(times)))
    assert {(each.median_us, each.least_us) for each in told} == {(3e6, 1e6)}


def test_a_guard_that_finds_a_fault_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_bare, "CpuGuard", lambda kernels: lambda *tables: torch_page_guard(*tables) + 1)
    torch.set_num_threads(2)
    with pytest.raises(ServeError, match="found a fault in tables without one"):
        bare(ctypes.CDLL(None), calls=1)
    assert torch.get_num_threads() == 2, "it was on one thread when this happened"


def test_the_real_guards_agree_on_the_tables(kernels: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_bare, "SIZES", ((8, 64),))
    assert {each.guard for each in bare(kernels, calls=1)} == {"native", "torch"}
