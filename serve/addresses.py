"""Where a deployment is asked to listen, and where it then answers."""

from __future__ import annotations

from dataclasses import dataclass, fields

from roundhouse.errors import UsageError

__all__ = ["Endpoints", "Ports"]

_LAST_PORT = 65535


@dataclass(frozen=True)
class Ports:
    """The address and ports to listen on; 0 asks for a free port.

    Raises:
        UsageError: naming the option: no address, a number that is no port, or one port for two purposes.
    """

    host: str = "127.0.0.1"
    http: int = 8000
    grpc: int = 8001
    metrics: int = 8002
    openai: int = 9000

    def __post_init__(self) -> None:
        if not self.host:
            raise UsageError("--host is empty", hint="Give an address, such as 127.0.0.1.")
        taken: dict[int, str] = {}
        for name in (field.name for field in fields(self) if field.name != "host"):
            port: int = getattr(self, name)
            if not 0 <= port <= _LAST_PORT:
                raise UsageError(f"--{name} {port}: a port is a number from 0 to {_LAST_PORT}")
            if port and port in taken:
                raise UsageError(f"--{taken[port]} and --{name} are both {port}", hint="Give each a port of its own.")
            taken[port] = name


@dataclass(frozen=True)
class Endpoints:
    """Where a running deployment answers."""

    model: str
    """The first of the models."""
    models: tuple[str, ...]
    http: str
    """Base URL of Triton's HTTP endpoint."""
    grpc: str
    """Triton's gRPC endpoint, as ``host:port``."""
    metrics: str
    """URL of Triton's metrics."""
    openai: str
    """Base URL for OpenAI clients; ends with ``/v1``."""
    chat: bool
    """Whether the first model can chat, that is, whether its tokenizer has a chat template."""
    control_key: str | None = None
    """What loading and unloading models needs, when that is allowed."""
