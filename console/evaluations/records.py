"""What pages and the API show of evaluations."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from roundhouse.serve.accuracy.records import EvaluationHeader, TaskScore
from roundhouse.serve.history.reader import RecordState

from ..benchmarks.records import BenchmarkJob, FileRow

__all__ = [
    "EngineGate",
    "EvaluationDetail",
    "EvaluationFilter",
    "EvaluationProgress",
    "EvaluationRow",
    "EvaluationSort",
    "GateState",
    "ScoreRow",
]

EvaluationSort = Literal["began", "-began", "worst", "-worst", "name", "-name", "model", "-model"]
"""What a list is sorted by; with ``-`` the greatest, or latest, come first. Evaluations without a number come last."""
GateState = Literal["passed", "failed", "not measured"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EvaluationFilter(_Record):
    """Which evaluations are listed: those that are all of this. None does not ask."""

    text: str | None = None
    """Words, each of which is part of name, model, base, tasks, host or id, in any case."""
    state: RecordState | None = None
    gate: GateState | None = None
    engine: str | None = None
    """An engine's id."""
    job: int | None = None
    """The job that measured it."""

    @property
    def is_set(self) -> bool:
        """Whether anything is left out."""
        return self != EvaluationFilter()


class ScoreRow(_Record):
    """What a task came to, in a list."""

    task: str
    value: float
    stderr: float | None
    difference: float | None
    """Against the base, over the same items."""


class EvaluationRow(_Record):
    """An evaluation in a list."""

    id: str
    state: RecordState
    """What pages show: one that was running when its host fell silent is ``interrupted``, until it is heard of again."""
    silent: bool
    """Whether that is so."""
    problem: str | None
    name: str
    """The engine's, or the model's as an endpoint calls it."""
    model: str
    engine_id: str | None
    base_name: str | None
    """What it was compared with."""
    gate: GateState
    gate_points: float
    """How many points of 100 a task may be down beyond noise."""
    gate_reasons: tuple[str, ...]
    """Sentences: what failed, or why it was not measured."""
    worst_difference: float | None
    """Points of 100 of the task that is furthest down against the base; negative is worse."""
    host: str
    began_at: datetime
    ended_at: datetime | None
    job_id: int | None
    scores: tuple[ScoreRow, ...]
    """In the order in which they were measured."""

    @property
    def is_live(self) -> bool:
        """Whether more may come."""
        return self.state == "running"


class EvaluationProgress(_Record):
    """How far an evaluation is."""

    id: str
    state: RecordState
    """As pages show it."""
    began_at: datetime
    job_id: int | None
    tasks: int
    """That it was asked for."""
    scored: int
    """Of these: that have come to something."""

    @property
    def is_live(self) -> bool:
        """Whether more may come."""
        return self.state == "running"


class EvaluationDetail(EvaluationRow):
    """An evaluation on its own page."""

    home: str
    recorded_at: datetime
    header: EvaluationHeader
    all_scores: tuple[TaskScore, ...]
    """In the order in which they were measured."""
    files: tuple[FileRow, ...]
    """Items of tasks among them; there once it has ended."""
    job: BenchmarkJob | None
    engine_known: bool
    """Whether the console knows its engine, and has a page for it."""

    @property
    def progress(self) -> EvaluationProgress:
        """How far it is."""
        return EvaluationProgress(
            id=self.id,
            state=self.state,
            began_at=self.began_at,
            job_id=self.job_id,
            tasks=len(self.header.tasks),
            scored=len(self.scores),
        )


class EngineGate(_Record):
    """Whether an engine has passed the gate: as its latest finished evaluation that measured it says."""

    state: GateState
    evaluation_id: str | None
    """None where it was not measured."""
    at: datetime | None
    worst_difference: float | None
