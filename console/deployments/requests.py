"""What programs ask about deployments, and what they are answered beside what pages show."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from ..access.secrets import new_secret
from .records import LogText
from .settings import DeploymentSecrets, DeploymentSettings

__all__ = ["DeploymentKey", "DeploymentLog", "DeploymentRequest", "StartedDeployment", "UnloadRequest"]

_KEY_PREFIX = "rh-"
_Secret = Annotated[SecretStr, Field(min_length=1, max_length=1024)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class DeploymentRequest(_Record):
    """A deployment that is asked for."""

    settings: DeploymentSettings
    host: str | None = Field(default=None, max_length=255)
    """Where; null: a host that has the engine and a live worker."""
    api_key: _Secret | None = None
    """What clients of the OpenAI front send, with `keyed`; null: one is drawn."""
    control_value: _Secret | None = None
    """What the control header of a remote Triton holds."""

    @property
    def secrets(self) -> DeploymentSecrets:
        """What nobody else may read; a key that is asked for and not given is drawn."""
        drawn = SecretStr(new_secret(_KEY_PREFIX)) if self.settings.keyed else None
        return DeploymentSecrets(api_key=self.api_key or drawn, control_value=self.control_value)


class UnloadRequest(_Record):
    """How a deployment is to end."""

    drain_s: float = Field(default=5.0, ge=0, le=600)
    """Seconds that running requests may go on."""


class StartedDeployment(_Record):
    """The deployment that was asked for, or to be ended, and the job that does it."""

    deployment_id: str
    job_id: int


class DeploymentKey(_Record):
    """The API key of a deployment's OpenAI front."""

    api_key: str


class DeploymentLog(_Record):
    """A part of a deployment's log."""

    lines: tuple[LogText, ...]
    """Ask again with `after` the last one's number."""
