"""What to evaluate, as a job's payload holds it and the command line makes it."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..measurement.endpoints import LONGEST_TIMEOUT_S
from ..settings import Overrides
from .gate import DEFAULT_POINTS

__all__ = ["EvaluationWish"]


class EvaluationWish(BaseModel):
    """What to ask whom, and what to compare it with."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    engine: str | None = None
    """Folder, id or name of an engine of this home; it is loaded for the time of the evaluation."""
    url: str | None = None
    """Base URL of an OpenAI-compatible endpoint, with or without ``/v1``."""
    model: str | None = None
    """The model's name at the endpoint; None takes the only one there is."""
    api_key_variable: str | None = None
    """Name of the environment variable with the endpoint's key: the key itself is written nowhere, and sent nowhere else."""
    server: str | None = None
    """What serves an external endpoint, in words, for the history."""
    tasks: tuple[str, ...] = ()
    """None: all shipped suites."""
    against: str | None = None
    """The base: an engine of this home, a URL, or the id of an evaluation whose answers are taken."""
    against_model: str | None = None
    """As ``model``, for a base that is a URL."""
    against_api_key_variable: str | None = None
    """As ``api_key_variable``, for a base that is a URL; None: the subject's, where both are the same server."""
    limit: int | None = Field(default=None, ge=1)
    """Items of each task at most; of a task of many subjects, spread over these, and one of each at least."""
    data: str | None = None
    """Folder with data sets of the public tasks; None takes them from the hub."""
    gate_points: float = Field(default=DEFAULT_POINTS, ge=0, le=100)
    seed: int = Field(default=0, ge=0)
    overrides: Overrides = Overrides()
    """Of the engine's recipe, and of the base's where that is an engine."""
    request_timeout_s: float = Field(default=600.0, gt=0, le=LONGEST_TIMEOUT_S)

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        if (self.engine is None) == (self.url is None):
            raise ValueError("either an engine or a URL is evaluated")
        return self
