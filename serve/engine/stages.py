"""Where the time of a step goes: named stages that a bench may clock.

Code names its stages in any case; the null twin listens by default, so that naming them costs next to nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol, get_args

__all__ = ["NO_STAGES", "STAGES", "Stage", "StageClock", "Stages"]

Stage = Literal["schedule", "prepare", "guard", "forward", "attention", "linears", "lm_head", "sampling", "detokenize", "other"]
"""``attention``, ``linears`` and ``lm_head`` lie within ``forward``; ``other`` is for who drives the loop."""

STAGES: tuple[Stage, ...] = get_args(Stage)


class Stages(Protocol):
    """Listens to which stage runs."""

    def stage(self, name: Stage) -> AbstractContextManager[None]:
        """What is done within the returned context belongs to this stage, but for what a stage within it takes."""
        ...

    def took(self, name: Stage, seconds: float) -> None:
        """Of the stage that is entered so many seconds belong to this one: told afterwards by who clocked them."""
        ...


class _NoStages:
    """The null twin."""

    def __init__(self) -> None:
        self._silence = nullcontext()

    def stage(self, name: Stage) -> AbstractContextManager[None]:
        return self._silence

    def took(self, name: Stage, seconds: float) -> None:
        pass


NO_STAGES: Stages = _NoStages()
"""Hears nothing."""


class StageClock:
    """Sums seconds and counts entries by stage. Not for several threads.

    Every moment counts for one stage, the innermost, so the sums add up to the time spent within any stage.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._contexts = {name: _Context(self, name) for name in STAGES}
        self._within: list[Stage] = []
        self._since = 0.0
        self.seconds: dict[Stage, float] = {}
        self.counts: dict[Stage, int] = {}
        self.reset()

    def stage(self, name: Stage) -> AbstractContextManager[None]:
        return self._contexts[name]

    def took(self, name: Stage, seconds: float) -> None:
        self.seconds[name] += seconds
        self.seconds[self._within[-1]] -= seconds
        self.counts[name] += 1

    def reset(self) -> None:
        """Begin anew with empty sums."""
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self.counts = dict.fromkeys(STAGES, 0)

    def enter(self, name: Stage) -> None:
        """A stage begins; the one around it rests."""
        self._settle()
        self._within.append(name)
        self.counts[name] += 1

    def leave(self) -> None:
        """The innermost stage has ended; the one around it goes on."""
        self._settle()
        self._within.pop()

    def _settle(self) -> None:
        now = self._clock()
        if self._within:
            self.seconds[self._within[-1]] += now - self._since
        self._since = now


class _Context:
    """One stage of one clock; holds no state, so it may be entered within itself."""

    def __init__(self, clock: StageClock, name: Stage) -> None:
        self._clock = clock
        self._name: Stage = name

    def __enter__(self) -> None:
        self._clock.enter(self._name)

    def __exit__(self, *error: object) -> None:
        self._clock.leave()
