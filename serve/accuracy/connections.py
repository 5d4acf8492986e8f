"""Connections of an HTTP client that can be broken from another thread: closing the client would leave its readers waiting."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

__all__ = ["Connections"]

_MADE = ("connect_tcp.complete", "start_tls.complete")
"""How events end that tell of a socket, also of one to a proxy."""


class Connections:
    """Knows the sockets of whatever was sent with :attr:`extensions`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._broken = False

    @property
    def extensions(self) -> dict[str, Any]:
        """Of a request to httpx."""
        return {"trace": self._traced}

    def break_all(self) -> None:
        """Whoever waits for an answer gets an error at once, and so does whoever connects, until :meth:`mend`."""
        with self._lock:
            self._broken = True
            for each in self._sockets:
                _shut(each)

    def mend(self) -> None:
        """Let requests be sent again."""
        with self._lock:
            self._broken = False

    def _traced(self, event: str, told: Mapping[str, Any]) -> None:
        made = told["return_value"].get_extra_info("socket") if event.endswith(_MADE) else None
        if made is None:
            return
        with self._lock:
            self._sockets.add(made)
            if self._broken:
                _shut(made)


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed already
        # Not TLS's own, which first forgets the encryption: another thread could go on in the clear.
        socket.socket.shutdown(each, socket.SHUT_RDWR)
