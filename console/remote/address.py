"""Where a console is, and with which token it is asked."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from roundhouse.errors import UsageError

__all__ = ["SERVER_VARIABLE", "TOKEN_VARIABLE", "is_this_machine", "read_token", "server_address"]

SERVER_VARIABLE, TOKEN_VARIABLE = "ROUNDHOUSE_SERVER", "ROUNDHOUSE_TOKEN"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PORTS = {"http": 80, "https": 443}


def server_address(url: str, *, insecure_http: bool = False) -> str:
    """A console's address, checked: a scheme and a place, and nothing else.

    Args:
        url: as it was given.
        insecure_http: whether a token may travel in clear to another machine.

    Raises:
        UsageError: it is no address of a console, or a token would travel in clear.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known or parts.path not in ("", "/") or parts.query or parts.fragment:
        # What is before an @ may be a password: it is not shown again.
        shown = url.rpartition("@")[2]
        raise UsageError(f"--server {shown} is no address of a console", hint="Write https://name.example, without a path.")
    if "@" in parts.netloc:
        raise UsageError(
            "an address with a name or password in it would be kept in shell histories and logs",
            hint=f"Give the address alone, and a token in {TOKEN_VARIABLE} or with --token-file.",
        )
    if parts.scheme == "http" and not insecure_http and not is_this_machine(str(parts.hostname)):
        raise UsageError(
            f"http://{parts.netloc} would send the token in clear, for everybody on the way to read",
            hint="Use https, a tunnel to this machine (ssh -L), or --insecure-http where the network is trusted.",
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


def is_this_machine(host: str) -> bool:
    """Whether a name or an address leads back here, so that nothing leaves this machine."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(file: Path | None, warn: Callable[[str], None], environment: Mapping[str, str] = os.environ) -> str:
    """The token of the console: from a file, or else from the environment.

    Args:
        file: which holds it and nothing else; None: the environment is asked.
        warn: is told when others can read the file.
        environment: of this process.

    Raises:
        UsageError: there is none, or what is there is no token.
    """
    if file is None:
        token, where = environment.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
        if not token:
            raise UsageError(
                "a console asks for a token",
                hint=f"Make one on the page of your account there, for {TOKEN_VARIABLE} or the file of --token-file.",
            )
    else:
        token, where = _read(file, warn), str(file)
    if not (token.isascii() and token.isprintable()) or " " in token or not token:
        raise UsageError(f"{where} holds no token: one is a word that begins with rh_")
    return token


def _read(file: Path, warn: Callable[[str], None]) -> str:
    try:
        if file.stat().st_mode & _OTHERS:
            warn(f"warning: others can read {file}; `chmod 600` keeps the token in it yours")
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"the token file {file} cannot be read: {reason}") from None
