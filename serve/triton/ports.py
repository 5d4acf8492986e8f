"""Network ports: finding free ones, and saying which one is taken."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

from roundhouse.errors import ServeError

__all__ = ["TritonPorts", "bind_port", "choose_ports"]


@dataclass(frozen=True)
class TritonPorts:
    """Triton's three ports; 0 asks for a free one."""

    http: int = 0
    grpc: int = 0
    metrics: int = 0

    @property
    def chosen(self) -> tuple[int, int, int]:
        """The three numbers."""
        return self.http, self.grpc, self.metrics


def choose_ports(wanted: TritonPorts, host: str) -> TritonPorts:
    """Replace each 0 by a port that is free right now.

    Nothing reserves them: the server may still lose the race for one and must then be started again.

    Raises:
        ServeError: a port that was asked for is taken.
    """
    held: list[socket.socket] = []
    try:
        numbers = []
        for port in wanted.chosen:  # bound all at once, so that no number comes twice
            held.append(bind_port(host, port))
            numbers.append(int(held[-1].getsockname()[1]))
    finally:
        for bound in held:
            bound.close()
    return TritonPorts(*numbers)


def bind_port(host: str, port: int) -> socket.socket:
    """Bind a TCP port (0: any free one); the caller listens on it or closes it.

    Raises:
        ServeError: it is taken, or the host is not an address of this machine.
    """
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if port:  # a port that was closed a moment ago may be taken again; free ports must stay distinct
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # its connections must not keep the port from a restart
    except (OSError, ValueError) as error:  # a host that is no name at all is a ValueError
        bound.close()
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ServeError(f"cannot listen on {host}:{port}: {why}", hint=_hint(error)) from None
    return bound


def _hint(error: Exception) -> str:
    about_the_port = isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES)
    if about_the_port:
        return "Give another port, or 0 for any free one."
    return "Give an IPv4 address of this machine as the host: 127.0.0.1, or 0.0.0.0 for all of them."
