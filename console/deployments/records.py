"""What is shown of deployments."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from roundhouse.serve.triton.samples import Sample

from ..models import LIVE_STATES, Deployment, DeploymentKind, DeploymentState
from .settings import DeploymentSettings
from .silence import was_silent

__all__ = ["DeploymentDetail", "DeploymentRow", "LogText", "Rates", "TimedSample"]


class DeploymentRow(BaseModel):
    """One in a list."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    """What clients call the model."""
    engine_id: str
    engine_name: str
    kind: DeploymentKind
    host: str
    state: DeploymentState
    reason: str | None
    openai: str | None
    """Base URL for OpenAI clients; None before it was ready."""
    restarts: int
    created_by: str
    created_at: datetime
    changed_at: datetime
    ready_at: datetime | None
    ended_at: datetime | None
    seen_at: datetime | None
    """When its host last told of it."""
    silent: bool
    """Whether that is a while ago: `state` is what was last known then."""

    @property
    def live(self) -> bool:
        """Whether there may be processes of it."""
        return self.state in LIVE_STATES

    @property
    def shown_state(self) -> str:
        """The word that pages show."""
        return "silent" if self.silent else self.state

    @classmethod
    def of(cls, row: Deployment, engine_name: str, now: datetime, **more: Any) -> Self:
        """From its row, at this moment; ``more`` are the fields that a kind of record adds."""
        fields = {name: getattr(row, name) for name in DeploymentRow.model_fields if hasattr(row, name)}
        openai = (row.endpoints or {}).get("openai")
        return cls(**fields, engine_name=engine_name, silent=was_silent(row, now), openai=openai, **more)


class TimedSample(BaseModel):
    """What was counted at a moment."""

    model_config = ConfigDict(frozen=True)

    at: datetime
    values: Sample


class Rates(BaseModel):
    """How much a second, between two samples."""

    model_config = ConfigDict(frozen=True)

    seconds: float
    """Between the two."""
    generated_tokens: float
    prompt_tokens: float
    tag_checks: float
    ttft_s: float | None
    """Mean seconds to the first token of the requests that got it in this time; None when there was none."""

    @classmethod
    def between(cls, first: TimedSample, last: TimedSample) -> Self | None:
        """None when no time lies between them, or the engine process was started again in it."""
        before, now, seconds = first.values, last.values, (last.at - first.at).total_seconds()
        if seconds <= 0 or now.steps < before.steps or now.generated_tokens < before.generated_tokens:
            return None
        answered = now.ttft_count - before.ttft_count
        return cls(
            seconds=seconds,
            generated_tokens=(now.generated_tokens - before.generated_tokens) / seconds,
            prompt_tokens=(now.prompt_tokens - before.prompt_tokens) / seconds,
            tag_checks=(now.tag_checks - before.tag_checks) / seconds,
            ttft_s=(now.ttft_sum - before.ttft_sum) / answered if answered > 0 else None,
        )


class DeploymentDetail(DeploymentRow):
    """One on its own page."""

    hint: str | None
    home: str
    settings: DeploymentSettings
    endpoints: dict[str, Any] | None
    """Where it answers: ``http``, ``grpc``, ``metrics``, ``openai``, and ``chat``, whether it can."""
    sample: TimedSample | None
    """The latest."""
    rates: Rates | None
    """Over about the last ten seconds."""
    uptime_s: float | None
    """Since it last became ready; None while it is not."""
    has_worker: bool
    """Whether a worker of its host and home is alive: nobody else can stop it, and without one it can be given up."""


class LogText(BaseModel):
    """A line of a log."""

    model_config = ConfigDict(frozen=True)

    number: int
    """From 1."""
    at: datetime
    text: str
