"""What part of a decode step goes to the page check: comparing, sealing what was written, and issuing tags.

In the loop's own stages tags are issued and cleared within ``schedule``, and sealing is part of ``guard``. Here each is
clocked as what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from step_profile import StepProfile, profile

from roundhouse.build.recipe import Guard
from roundhouse.plugins.page_tag import Tracker
from roundhouse.serve.engine.integrity import create_integrity
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.runtime import Runtime
from roundhouse.serve.engine.stages import StageClock
from roundhouse.serve.engine.tokenizer import EngineTokenizer
from roundhouse.serve.settings import EngineSettings

__all__ = ["TARGET", "GuardClock", "Part", "Share", "clocked_loop", "share"]

TARGET = 0.005
"""At level tags the check is to take less of a step than this."""

Part = Literal["sealing", "tracker"]
"""``sealing``: noting what written pages hold; ``tracker``: issuing and clearing tags, and noting who got a page."""


class GuardClock(StageClock):
    """A stage clock with stages of its own for parts of the check; what is left in ``guard`` is comparing."""

    def reset(self) -> None:
        super().reset()
        for part in get_args(Part):
            self.seconds[part], self.counts[part] = 0.0, 0


class _Clocked:
    """What is done within belongs to a part of the check."""

    def __init__(self, clock: GuardClock, part: Part) -> None:
        self._clock = clock
        self._part: Any = part

    def __enter__(self) -> None:
        self._clock.enter(self._part)

    def __exit__(self, *error: object) -> None:
        self._clock.leave()


class _ClockedTracker:
    """A tracker whose every call is clocked."""

    def __init__(self, tracker: Tracker, clocked: _Clocked) -> None:
        self.page_tags = tracker.page_tags
        self._tracker = tracker
        self._clocked = clocked

    def grant(self, page: int) -> int:
        with self._clocked:
            return self._tracker.grant(page)

    def issued(self, page: int) -> int:
        with self._clocked:
            return self._tracker.issued(page)

    def clear(self, page: int) -> None:
        with self._clocked:
            self._tracker.clear(page)


@dataclass(frozen=True)
class Share:
    """A profile of decode steps at one level of the check. Milliseconds are a step's."""

    level: Guard
    profile: StepProfile

    @property
    def comparing_ms(self) -> float:
        """Comparing tags, and contents where they are compared."""
        return self.profile.ms["guard"]

    @property
    def sealing_ms(self) -> float:
        return self._part("sealing")

    @property
    def tracker_ms(self) -> float:
        return self._part("tracker")

    @property
    def of_step(self) -> float:
        """The whole check's part of the step, 0 to 1."""
        return (self.comparing_ms + self.sealing_ms + self.tracker_ms) / self.profile.step_ms

    def _part(self, part: Any) -> float:
        return self.profile.ms[part]


def clocked_loop(
    runtime: Runtime[Any], settings: EngineSettings, tokenizer: EngineTokenizer, *, vocab: int, clock: GuardClock
) -> EngineLoop:
    """A loop with the check that the settings ask for, every part of it clocked. The runtime's own stages are not."""
    check = create_integrity(settings, runtime.page_bytes)
    tracker, sealing = _Clocked(clock, "tracker"), _Clocked(clock, "sealing")
    check.tracker = _ClockedTracker(check.tracker, tracker)
    _clock_method(check.history, "note", tracker)
    _clock_method(check, "written", sealing)
    return EngineLoop(runtime, settings, tokenizer, vocab=vocab, stages=clock, integrity=check)


def share(level: Guard, loop: EngineLoop, clock: GuardClock, prompts: Sequence[list[int]], *, steps: int) -> Share:
    """Clock decode steps in which every prompt has a row.

    Args:
        level: of the loop's check.
        loop: of :func:`clocked_loop`, idle.
        clock: its clock.
        prompts: one for each request.
        steps: how many.
    """
    return Share(level, profile(loop, clock, prompts, steps=steps))


def _clock_method(owner: Any, name: str, clocked: _Clocked) -> None:
    method = getattr(owner, name)

    def call(*arguments: Any) -> Any:
        with clocked:
            return method(*arguments)

    setattr(owner, name, call)
