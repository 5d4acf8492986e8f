"""The gate: whether an engine may stand in for its base."""

from __future__ import annotations

from collections.abc import Sequence

from .records import GateResult, TaskScore, Unmeasured

__all__ = ["DEFAULT_POINTS", "judge"]

DEFAULT_POINTS = 0.8
"""Points of 100 that a task may be down."""


def judge(
    scores: Sequence[TaskScore], unmeasured: Sequence[Unmeasured], *, limit_points: float, ended: bool = True
) -> GateResult:
    """Judge the tasks that are shares of right answers.

    A task fails when it is further down than allowed *and* the whole 95 % interval of the paired difference is below zero:
    beyond noise means that chance alone does not explain that it is down at all. Asking for an interval wholly below the
    limit would let a loss of several points pass on every suite that is not thousands of questions long; asking for the
    value alone would fail every second engine that lost nothing. So passed means: no loss was shown, not: no loss.

    Args:
        scores: of every task that was measured.
        unmeasured: tasks that came to nothing. A gate that lacks one of its tasks has not passed.
        limit_points: points of 100 that a task may be down.
        ended: whether the evaluation came to its end.
    """
    judged = [score for score in scores if score.is_share and score.difference is not None]
    if failures := [_failure(score) for score in judged if _failed(score, limit_points)]:
        return GateResult(state="failed", limit_points=limit_points, reasons=tuple(failures))
    reasons = [] if ended else ["The evaluation did not come to its end."]
    reasons += [f"{each.task} was not measured: {each.reason}" for each in unmeasured if each.is_share]
    reasons += [
        f"{score.task} could not be compared: {score.uncompared or 'its base was not measured'}."
        for score in scores
        if score.is_share and score.difference is None and (judged or score.uncompared)
    ]
    if not judged:
        reasons.append("No share of right answers was compared with a base.")
    return GateResult(state="not measured" if reasons else "passed", limit_points=limit_points, reasons=tuple(reasons))


def _failed(score: TaskScore, limit_points: float) -> bool:
    difference = score.difference
    return difference is not None and 100 * difference.value < -limit_points and difference.high < 0


def _failure(score: TaskScore) -> str:
    if score.difference is None:
        raise ValueError("a task without a difference cannot fail")
    down, least, most = (-100 * each for each in (score.difference.value, score.difference.high, score.difference.low))
    return f"{score.task} is {down:.1f} points down, surely between {least:.1f} and {most:.1f}."
