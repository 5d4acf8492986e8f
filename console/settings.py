"""What one web process runs with."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from roundhouse.build.home import Home
from roundhouse.errors import UsageError

__all__ = ["ConsoleSettings"]

_THIS_MACHINE = ("127.0.0.1", "::1")
_DEFAULT_PORTS = {"http": 80, "https": 443}


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
    proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies whose word is taken for where a request comes from; only with a public URL. Empty: a
    proxy on this machine."""
    model_folders: tuple[Path, ...] = ()
    """Under which model folders and files may lie."""
    worker: bool = True
    """Whether one worker runs beside it."""

    @field_validator("public_url")
    @classmethod
    def _check_public_url(cls, given: str | None) -> str | None:
        return None if given is None else _address(given)

    @field_validator("proxies")
    @classmethod
    def _check_proxies(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in given:
            try:
                ip_network(proxy)
            except ValueError:
                raise UsageError(
                    f"--proxy {proxy} is no address and no network", hint="Such as 10.0.0.5 or 10.0.0.0/24."
                ) from None
        return given

    @property
    def secure(self) -> bool:
        """Whether browsers reach it by HTTPS."""
        return self.public_url is not None and urlsplit(self.public_url).scheme == "https"

    @property
    def trusted_proxies(self) -> tuple[str, ...]:
        """Whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are believed; nobody's without a public URL."""
        return (self.proxies or _THIS_MACHINE) if self.public_url else ()

    @property
    def is_nameless(self) -> bool:
        """Whether it listens on every address and knows none of its names, so that only this machine is answered."""
        return self.public_url is None and _is_everywhere(self.host)

    @property
    def is_exposed(self) -> bool:
        """Whether others can reach it in clear, so that whoever is on the way can read passwords."""
        try:
            here = ip_address(self.host).is_loopback
        except ValueError:
            here = self.host == "localhost"
        return not here and not self.secure

    def address(self, port: int) -> str:
        """Where a browser finds it.

        Args:
            port: that it listens on.
        """
        if self.public_url is not None:
            return self.public_url
        host = "127.0.0.1" if _is_everywhere(self.host) else self.host
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def host_names(self) -> tuple[str, ...]:
        """What a request's Host header may name."""
        names = ["localhost", "127.0.0.1", "[::1]"]
        if self.public_url is not None and (public := urlsplit(self.public_url).hostname):
            names.append(public)
        if not _is_everywhere(self.host):
            names.append(self.host)
        return tuple(dict.fromkeys(names))


def _address(url: str) -> str:
    """A URL with nothing but a scheme and a place, as browsers write it in ``Origin``.

    Raises:
        UsageError: it is something else.
    """
    try:
        parts = urlsplit(url)
        place = parts.netloc.lower().removesuffix(f":{_DEFAULT_PORTS.get(parts.scheme)}")
        plain = (
            parts.scheme in _DEFAULT_PORTS and parts.hostname and "@" not in place and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        plain = False
    if not plain or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UsageError(f"--public-url {url!r} is no address of a console", hint="Write https://name.example, without a path.")
    return f"{parts.scheme}://{place}"


def _is_everywhere(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
