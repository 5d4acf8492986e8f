"""What the commands of one run share: the server that was named, and a client for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from roundhouse.build.extras import require_extra

if TYPE_CHECKING:
    from .client import Client

__all__ = ["NamedServer", "client_of"]


@dataclass(frozen=True)
class NamedServer:
    """What was said before the command."""

    url: str
    token_file: Path | None
    insecure_http: bool


def client_of(context: typer.Context) -> Client:
    """A client for the server that was named; closed when the command ends.

    Raises:
        SetupError: this installation lacks what it needs.
        UsageError: the address is none, or there is no token.
    """
    require_extra("console")
    from .address import read_token, server_address
    from .client import Client

    named = context.find_object(NamedServer)
    if named is None:
        raise AssertionError("the commands are below the callback that names the server")
    server = server_address(named.url, insecure_http=named.insecure_http)
    client = Client(server, read_token(named.token_file, lambda line: typer.echo(line, err=True)))
    context.call_on_close(client.close)
    return client
