"""Evaluations as tables that can be pasted into a ticket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.table import Table

from ..history import read_header
from .records import Difference, Evaluation, EvaluationHeader, TaskScore

__all__ = ["about_evaluation", "evaluations_table", "gate_words", "parts_table", "score_words", "scores_table"]


def scores_table(evaluation: Evaluation) -> Table:
    """Each task: value, standard error, base, difference with its interval; and what was not measured."""
    table = Table(box=SIMPLE)
    table.add_column("task")
    for heading in ("value", "± error", "base", "difference", "95 % interval", "items", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for score in evaluation.scores:
        difference = score.difference
        table.add_row(
            score.task,
            _value_words(score, score.value),
            "-" if score.stderr is None else _number(score, score.stderr),
            "-" if difference is None else _value_words(score, difference.base),
            "-" if difference is None else _signed(score, difference.value),
            "-" if difference is None else _interval(score, difference),
            f"{score.items:,}",
            f"{score.seconds:,.0f}",
        )
    for each in evaluation.unmeasured:
        table.add_row(each.task, "not measured", *[""] * 6)
    return table


def parts_table(scores: Sequence[TaskScore]) -> Table:
    """Values by kind of question, of tasks that have several."""
    table = Table(box=SIMPLE)
    table.add_column("task")
    table.add_column("of")
    table.add_column("value", justify="right")
    for score in scores:
        for part, value in score.parts.items():
            told = f"{value:.4f} nats a token, at least" if part == "KL" else _value_words(score, value)
            table.add_row(score.task, part, told)
    return table


def evaluations_table(evaluations: Iterable[Evaluation]) -> Table:
    """One row each."""
    table = Table(box=SIMPLE)
    for heading in ("id", "of", "against", "tasks", "state", "gate", "began"):
        table.add_column(heading, no_wrap=heading in ("id", "gate"))
    for each in evaluations:
        header = each.header
        table.add_row(
            header.id,
            header.subject.name,
            header.base.name if header.base else "-",
            str(len(header.tasks)),
            each.state,
            each.gate.state,
            f"{header.began_at:%Y-%m-%d %H:%M}",
        )
    return table


def about_evaluation(folder: Path) -> str:
    """What an evaluation is about, in a line.

    Raises:
        ServeError: it is damaged.
    """
    header = read_header(folder, EvaluationHeader)
    against = f" against {header.base.name}" if header.base else ""
    return f"{header.subject.name}{against}, {', '.join(header.tasks)}, asked {header.began_at:%Y-%m-%d %H:%M}"


def gate_words(evaluation: Evaluation) -> list[str]:
    """What the gate says, and why: a line each."""
    gate = evaluation.gate
    reasons = list(gate.reasons)
    if gate.state == "passed" and (room := _room_for_loss(evaluation, gate.limit_points)):
        reasons.append(room)
    return [f"gate ({gate.limit_points:g} points): {gate.state}", *(f"  {reason}" for reason in reasons)]


def _room_for_loss(evaluation: Evaluation, limit_points: float) -> str | None:
    """How large a loss may be that the questions were too few to show, where that is more than the gate allows."""
    lows = {each.task: -100 * each.difference.low for each in evaluation.scores if each.is_share and each.difference}
    task = max(lows, key=lambda name: lows[name], default=None)
    if task is None or lows[task] <= limit_points:
        return None
    return f"No loss was shown, which is not that there is none: {task} may be up to {lows[task]:.1f} points down."


def score_words(score: TaskScore) -> str:
    """What a task came to, in a line."""
    told = f"{score.task}: {_value_words(score, score.value)}"
    if score.stderr is not None:
        told += f" ± {_number(score, score.stderr)}"
    if score.difference is not None:
        told += f", base {_value_words(score, score.difference.base)}"
    return f"{told} ({score.items:,} items, {score.seconds:,.0f} s)"


def _value_words(score: TaskScore, value: float) -> str:
    """A value as people read it: shares in percent."""
    return f"{_number(score, value)} %" if _is_percent(score) else _number(score, value)


def _is_percent(score: TaskScore) -> bool:
    return score.is_share or score.metric == "agreement"


def _number(score: TaskScore, value: float) -> str:
    return f"{100 * value:.1f}" if _is_percent(score) else f"{value:.2f}"


def _signed(score: TaskScore, value: float) -> str:
    return f"{100 * value:+.1f}" if _is_percent(score) else f"{value:+.2f}"


def _interval(score: TaskScore, difference: Difference) -> str:
    return f"{_signed(score, difference.low)} … {_signed(score, difference.high)}"
