"""What one web process runs with."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from roundhouse.build.home import Home

__all__ = ["ConsoleSettings"]


class ConsoleSettings(BaseModel):
    """Settings of the web process; they stay as they are while it runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    home: Home
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(default=8080, ge=0, le=65535)
    """0 takes a free one."""
    public_url: str | None = None
    """How browsers reach it through a proxy, such as ``https://roundhouse.example``; None: directly."""
    model_folders: tuple[Path, ...] = ()
    """Under which model folders and files may lie."""
    worker: bool = True
    """Whether one worker runs beside it."""

    @property
    def secure(self) -> bool:
        """Whether browsers reach it by HTTPS."""
        return self.public_url is not None and urlsplit(self.public_url).scheme == "https"

    @property
    def host_names(self) -> tuple[str, ...]:
        """What a request's Host header may name."""
        names = ["localhost", "127.0.0.1", "[::1]"]
        if self.public_url is not None and (public := urlsplit(self.public_url).hostname):
            names.append(public)
        if not _is_everywhere(self.host):
            names.append(self.host)
        return tuple(dict.fromkeys(names))


def _is_everywhere(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
