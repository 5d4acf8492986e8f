"""What a deployment is asked to be. Its secrets are kept apart, encrypted."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from roundhouse.serve.settings import Overrides

from ..models import DeploymentKind
from .addresses import Host, HostPort, HttpUrl

__all__ = ["DeploymentSecrets", "DeploymentSettings", "ToolFormName"]

ToolFormName = Literal["hermes", "llama3", "kimi", "glm"]
_Port = Annotated[int, Field(ge=0, le=65535)]


class DeploymentSettings(BaseModel):
    """One engine, served under one name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: DeploymentKind = "local"
    engine_id: str
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    """What clients call the model."""
    address: Host = "127.0.0.1"
    """Where it listens. API keys guard only the OpenAI front, nothing guards Triton's own ports."""
    http: _Port = 0
    """0 takes a free port, which it then keeps."""
    grpc: _Port = 0
    metrics: _Port = 0
    openai: _Port = 0
    overrides: Overrides = Overrides()
    """What to change of the engine's recipe."""
    tool_form: ToolFormName | None = None
    """How the model writes tool calls; None reads it from its chat template."""
    keyed: bool = False
    """Whether the OpenAI front asks for the API key among the secrets."""
    triton_url: HttpUrl | None = None
    """Of a remote deployment: the HTTP endpoint of the Triton server that it is loaded into."""
    triton_grpc: HostPort | None = None
    """Its gRPC endpoint, as ``host:port``."""
    triton_metrics: HttpUrl | None = None
    """URL of its metrics."""
    control_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] | None = None
    """The header that its model control asks for, where it does; the value is among the secrets."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        ports = [port for port in (self.http, self.grpc, self.metrics, self.openai) if port]
        if len(set(ports)) < len(ports):
            raise ValueError("two ports are the same")
        remote = (self.triton_url, self.triton_grpc, self.triton_metrics)
        if self.kind == "local" and any((*remote, self.control_header)):
            raise ValueError("a local deployment starts a Triton server of its own: give no other's address")
        if self.kind == "remote":
            if not all(remote):
                raise ValueError("a remote deployment needs the HTTP URL, the gRPC address and the metrics URL of its Triton")
            if self.http or self.grpc or self.metrics:
                raise ValueError("a remote Triton has its ports already")
        return self


class DeploymentSecrets(BaseModel):
    """What goes with the settings and must be readable by nobody else."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    api_key: SecretStr | None = None
    """What clients of the OpenAI front send."""
    control_value: SecretStr | None = None
    """What the control header holds."""

    def in_clear(self) -> dict[str, str]:
        """Only those that are there; to be encrypted, or used, at once."""
        found = {"api_key": self.api_key, "control_value": self.control_value}
        return {name: secret.get_secret_value() for name, secret in found.items() if secret is not None}
