"""What programs ask about deployments, and what they are answered beside what pages show."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from ..access.secrets import new_secret
from .records import DeploymentDetail, LogText
from .settings import DeploymentSecrets, DeploymentSettings

__all__ = ["DeploymentLog", "DeploymentRequest", "StartedDeployment", "StopRequest"]

_KEY_PREFIX = "rh-"
_Secret = Annotated[SecretStr, Field(min_length=1, max_length=1024)]


class DeploymentRequest(DeploymentSettings):
    """A deployment that is asked for."""

    host: str | None = Field(default=None, max_length=255)
    """Where; null: a host that has the engine and a live worker."""
    api_key: _Secret | None = None
    """What clients of the OpenAI front send, with ``keyed``; null: one is drawn."""
    control_value: _Secret | None = None
    """What the control header holds."""

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        if self.api_key is not None and not self.keyed:
            raise ValueError("an API key is given that nobody is asked for: set keyed")
        return self

    @property
    def settings(self) -> DeploymentSettings:
        """What it is to be, without where and without secrets."""
        return DeploymentSettings.model_validate(self.model_dump(include=set(DeploymentSettings.model_fields)))

    @property
    def secrets(self) -> DeploymentSecrets:
        """What nobody else may read."""
        key = (self.api_key or SecretStr(new_secret(_KEY_PREFIX))) if self.keyed else None
        return DeploymentSecrets(api_key=key, control_value=self.control_value)


class StartedDeployment(BaseModel):
    """A deployment that was asked for, and the job that starts it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deployment: DeploymentDetail
    job_id: int


class StopRequest(BaseModel):
    """How a deployment is to end."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    drain_s: float = Field(default=5.0, ge=0, le=600)
    """How long running requests may go on, in seconds."""


class DeploymentLog(BaseModel):
    """A part of a deployment's log."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lines: tuple[LogText, ...]
    """Ask again with `after` the last one's number."""
