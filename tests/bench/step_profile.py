"""Where the time of a decode step goes, by stage, on a loop that was made for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cells import DecodeWindow
from systems import chunks_of, greedy_requests

from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.stages import Stage, StageClock
from roundhouse.serve.measurement.processes import look

__all__ = ["StepProfile", "profile"]


@dataclass(frozen=True)
class StepProfile:
    """Decode steps of so many requests at once."""

    concurrency: int
    steps: int
    ms: dict[Stage, float]
    """A step's, by stage. They add up to the step; ``other`` is what no stage names, ``forward`` the rest of the model."""
    others: float
    """Cores that other processes kept busy."""

    @property
    def step_ms(self) -> float:
        """The whole step, with the clock's own cost."""
        return sum(self.ms.values())


def profile(loop: EngineLoop, clock: StageClock, prompts: Sequence[list[int]], *, steps: int) -> StepProfile:
    """Clock decode steps in which every prompt has a row.

    Args:
        loop: listened to by ``clock``, and idle.
        clock: what it tells its stages to.
        prompts: one for each request; their answers are cancelled once the steps are done.
        steps: how many.
    """
    requests = greedy_requests(prompts, new_tokens=None)
    for request in requests:
        loop.submit(request)
    window = DecodeWindow(len(requests))
    while not window.open:
        window.note(chunks_of(loop.step()), 0.0)
    clock.reset()
    before = look()
    for _ in range(steps):
        with clock.stage("other"):
            loop.step()
    others = before.others(look())
    ms = {stage: seconds / steps * 1000 for stage, seconds in clock.seconds.items()}
    for request in requests:
        loop.cancel(request.request_id)
    while loop.has_work:
        loop.step()
    return StepProfile(len(requests), steps, ms, others)
