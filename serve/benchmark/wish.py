"""What to measure, as a job's payload holds it and the command line makes it."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..measurement.endpoints import LONGEST_TIMEOUT_S
from ..settings import Overrides
from .records import Driver
from .workload import Workload

__all__ = ["BenchmarkWish", "usual_seed"]

_Count = Annotated[int, Field(ge=1)]


def usual_seed(*, of_url: bool) -> int:
    """The seed where nobody names one: 0, and one that nobody had before where a URL is asked.

    A server that keeps running keeps its prefix cache as well: the prompts of the run before would be found there, and cost
    nothing. An engine that is started for the benchmark has an empty one.
    """
    return secrets.randbelow(2**31) if of_url else 0


def _usual_seed(fields: dict[str, Any]) -> int:
    return usual_seed(of_url=fields.get("url") is not None)


class BenchmarkWish(BaseModel):
    """What to measure. A job's payload holds it, and the command line makes one of its options."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    engine: str | None = None
    """Folder, id or name of an engine of this home; served for the time of the benchmark unless ``url`` says where it is."""
    url: str | None = None
    """Base URL of an OpenAI-compatible endpoint, with or without ``/v1``."""
    model: str | None = None
    """The model's name at the endpoint; None takes the only one there is."""
    tokenizer: str | None = None
    """Folder of the tokenizer of an endpoint's model, for prompts of an exact length; None: an approximate one."""
    metrics: str | None = None
    """URL of Triton's metrics of a deployment of ours, for what the engine counts; None where there are none."""
    api_key_variable: str | None = None
    """Name of the environment variable with the endpoint's key: the key itself is written nowhere."""
    server: str | None = None
    """What serves an external endpoint, in words, for the history."""
    driver: Driver = "aiperf"
    workload: Workload = Workload()
    concurrencies: tuple[_Count, ...] = Field(default=(1, 8, 16, 32, 64), min_length=1)
    repeats: int = Field(default=3, ge=1, le=100)
    prefill_lengths: tuple[_Count, ...] = ()
    """Prompt lengths at which prefill is measured apart."""
    seed: int = Field(default_factory=_usual_seed)
    """Of prompts and lengths; see :func:`usual_seed`."""
    request_timeout_s: float = Field(default=600.0, gt=0, le=LONGEST_TIMEOUT_S)
    overrides: Overrides = Overrides()
    """Of the engine's recipe, where it is served for the benchmark; where ``url`` says where it is, what it is served with."""

    @model_validator(mode="after")
    def _nothing_twice(self) -> Self:
        for numbers in (self.concurrencies, self.prefill_lengths):
            if len(set(numbers)) < len(numbers):
                raise ValueError(f"{', '.join(map(str, numbers))}: a number is there twice")
        return self
