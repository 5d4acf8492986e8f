"""From items to a task's score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roundhouse.errors import ServeError

from . import statistics
from .records import Difference, Item, TaskScore
from .suites.contract import Task

__all__ = ["score_of"]


def score_of(
    task: Task,
    items: Sequence[Item],
    *,
    seconds: float,
    note: str | None,
    details: Mapping[str, float] | None = None,
    uncompared: str | None = None,
) -> TaskScore:
    """What a task came to. It is compared over all its items, or not at all.

    Args:
        task: the task.
        items: its items, at least one, with the base's scores where they are compared.
        seconds: that the subject took.
        note: what a reader must know.
        details: beside the value by kind of question.
        uncompared: why it is not compared with the base, where that is known already.

    Raises:
        ServeError: it came to no number that can be written down.
    """
    ordered = sorted(items, key=lambda item: item.number)
    try:
        return _score_of(task, ordered, seconds=seconds, note=note, details=details or {}, uncompared=uncompared)
    except OverflowError:
        what = "its perplexity, or how that differs from the base's, is beyond any number"
        raise ServeError(f"the model finds the text so unlikely that {what}") from None


def _score_of(
    task: Task,
    ordered: Sequence[Item],
    *,
    seconds: float,
    note: str | None,
    details: Mapping[str, float],
    uncompared: str | None,
) -> TaskScore:
    estimate = _estimate(task, ordered)
    parts = {part: _estimate(task, [item for item in ordered if item.part == part]).value for part in _parts(ordered)}
    compared = sum(item.base_score is not None for item in ordered)
    if 0 < compared < len(ordered) and uncompared is None:
        uncompared = f"the base answered only {compared:,} of these {len(ordered):,} questions"
    whole = compared == len(ordered) and uncompared is None and not task.compares
    return TaskScore(
        task=task.name,
        suite=task.suite,
        metric=task.metric,
        higher_is_better=task.higher_is_better,
        is_share=task.is_share,
        value=estimate.value,
        stderr=estimate.stderr,
        items=len(ordered),
        difference=_difference(task, ordered) if whole else None,
        uncompared=uncompared,
        parts={**parts, **details},
        seconds=seconds,
        note=note,
    )


def _parts(items: Sequence[Item]) -> list[str]:
    return list(dict.fromkeys(item.part for item in items if item.part is not None))


def _estimate(task: Task, items: Sequence[Item]) -> statistics.Estimate:
    scores = [item.score for item in items]
    if task.metric == "perplexity":
        return statistics.perplexity(scores, _tokens(items))
    if task.metric == "agreement":
        return statistics.ratio(scores, _tokens(items))
    return statistics.share(scores)


def _difference(task: Task, items: Sequence[Item]) -> Difference | None:
    scores, base = [item.score for item in items], [item.base_score or 0.0 for item in items]
    if task.metric == "perplexity":
        return statistics.perplexity_difference(scores, base, _tokens(items))
    return statistics.share_difference(scores, base)


def _tokens(items: Sequence[Item]) -> list[int]:
    return [item.tokens or 1 for item in items]
