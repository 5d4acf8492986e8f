"""Runs the web application until it is told to stop."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from roundhouse.serve.stop_signals import stop_signals
from roundhouse.serve.triton.ports import bind_port

from ..settings import ConsoleSettings

__all__ = ["WebServer"]

_GRACE_S = 5
_IDLE_S = 75


class WebServer:
    """Uvicorn on a port that is bound before it starts: 0 is safe, and a taken port is an error at once.

    Args:
        app: what it serves.
        settings: where it listens.

    Raises:
        ServeError: the port is taken.
    """

    def __init__(self, app: FastAPI, settings: ConsoleSettings) -> None:
        self._socket: socket.socket = bind_port(settings.host, settings.port)
        self._socket.listen()  # who comes before it runs waits, and is not turned away
        self.port = int(self._socket.getsockname()[1])
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            http="h11",  # it bounds what it reads of a head
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=_GRACE_S,
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, name="web", daemon=True)

    def run(self, while_running: Callable[[], None]) -> None:
        """Serve until Ctrl-C, SIGTERM or SIGHUP. Must be called from the main thread.

        Args:
            while_running: called again and again meanwhile; what it raises ends the server.
        """
        with stop_signals() as stop:
            self._thread.start()
            try:
                while not stop.wait(0.5) and self._thread.is_alive():
                    while_running()
            finally:
                self.stop()

    def stop(self) -> None:
        """Let running requests end for a few seconds, then stop."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(timeout=_GRACE_S * 2)
        self._socket.close()
