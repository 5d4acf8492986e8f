"""What an evaluation writes down: schema 1, documented in docs/accuracy.md."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..history.moments import Moment
from ..history.reader import RecordState
from ..history.record import Record
from ..measurement.about import Environment, Subject

__all__ = [
    "Difference",
    "Evaluation",
    "EvaluationHeader",
    "GateResult",
    "Item",
    "Suite",
    "TaskScore",
    "Unmeasured",
]

Suite = Literal["roundhouse", "lm-eval"]
"""``roundhouse``: shipped with this package, under names of its own; ``lm-eval``: lm-evaluation-harness' public tasks."""


class Item(Record):
    """One question, and what came of it."""

    task: str
    number: int
    """From 0, the same question for every subject. Numbers may have gaps."""
    score: float
    """0 or 1 for right and wrong; for likelihoods, log-probability of the item in nats; for agreement, tokens that agree."""
    base_score: float | None = None
    """The base's, for the same question."""
    tokens: int | None = None
    """What a score that is a sum is a sum over."""
    part: str | None = None
    """What kind of question it is among the task's: a difficulty, a context length, a subject."""
    asked: str
    """The question, shortened."""
    answered: str
    wanted: str | None


class Difference(Record):
    """Subject minus base over the same items, paired, with a 95 % interval."""

    base: float
    value: float
    low: float
    high: float


class TaskScore(Record):
    """What a task came to."""

    task: str
    suite: Suite
    metric: str
    """``accuracy``, ``perplexity``, ``agreement``, …"""
    higher_is_better: bool
    is_share: bool
    """Whether it is a share of right answers from 0 to 1, told in points of 100, and so falls under the gate."""
    value: float
    stderr: float | None
    items: int
    difference: Difference | None = None
    uncompared: str | None = None
    """Why there is no difference although there is a base, in words; None where there is one, or nothing to compare with."""
    parts: dict[str, float] = Field(default_factory=dict)
    """The value by kind of question, in the order of the task; for agreement also ``KL``, in nats a token."""
    seconds: float
    """That the subject took."""
    note: str | None = None
    """What a reader must know: shots, template, subset."""


class Unmeasured(Record):
    """A task that came to nothing."""

    task: str
    reason: str
    """In a sentence."""
    is_share: bool
    """As :attr:`TaskScore.is_share`: without it the gate cannot pass."""


class GateResult(Record):
    """Whether no task is further down than allowed, beyond noise."""

    state: Literal["passed", "failed", "not measured"]
    limit_points: float
    reasons: tuple[str, ...]
    """Sentences: what failed, or why it was not measured."""


class EvaluationHeader(Record):
    """``header.json`` of an evaluation."""

    schema_version: Literal[1] = 1
    id: str
    began_at: Moment
    subject: Subject
    base: Subject | None
    """What it is compared with."""
    tasks: tuple[str, ...]
    limit: int | None
    """Items of each task at most."""
    seed: int
    gate_points: float
    command: str
    environment: Environment


class Evaluation(Record):
    """An evaluation as it is read."""

    header: EvaluationHeader
    state: RecordState
    ended_at: Moment | None
    problem: str | None
    scores: tuple[TaskScore, ...]
    unmeasured: tuple[Unmeasured, ...]
    gate: GateResult
