"""What people ask to be evaluated."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from ..benchmarks.requests import Subjects

__all__ = ["EvaluationRequest"]

_Id = Annotated[str, Field(min_length=1, max_length=64)]
_Task = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class EvaluationRequest(Subjects):
    """An evaluation that somebody asks for."""

    tasks: Annotated[tuple[_Task, ...], Field(max_length=50)] = ()
    """None: all shipped suites."""
    against_engine_id: _Id | None = None
    """The base: an engine, in the same home."""
    against_evaluation_id: _Id | None = None
    """Or an evaluation of that home, whose answers are taken."""
    limit: int | None = Field(default=None, ge=1, le=1_000_000)
    """Items of each task at most."""
    data: Annotated[str, Field(max_length=1_000)] | None = None
    """Folder, on the worker's host, with data sets of the public tasks; None takes them from the hub."""
    gate_points: float = Field(default=0.8, ge=0, le=100)
    """Points of 100 that a task may be down."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    request_timeout_s: float = Field(default=600.0, gt=0, le=86_400)

    @model_validator(mode="after")
    def _one_base(self) -> Self:
        if self.against_engine_id is not None and self.against_evaluation_id is not None:
            raise ValueError("compare with an engine or with an evaluation, not with both")
        if self.against_engine_id is not None and self.against_engine_id == self.engine_id:
            raise ValueError("an engine compared with itself says nothing")
        return self
