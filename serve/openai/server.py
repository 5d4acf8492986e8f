"""Runs the web application in a thread of this process."""

from __future__ import annotations

import threading
import time

import uvicorn
from fastapi import FastAPI

from roundhouse.errors import ServeError

from ..triton.ports import bind_port

__all__ = ["FrontServer"]

_POLL_S = 0.02
_GRACE_S = 5


class FrontServer:
    """Uvicorn on a port that is bound before it starts, so that 0 is safe and a taken port is an error at once.

    Args:
        app: the application.
        host: the address to listen on.
        port: 0 asks for a free one.

    Raises:
        ServeError: the port is taken.
    """

    def __init__(self, app: FastAPI, *, host: str, port: int) -> None:
        self._socket = bind_port(host, port)
        self.port = int(self._socket.getsockname()[1])
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=_GRACE_S, ws="none"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="openai-front", daemon=True
        )

    def start(self) -> None:
        """Start and wait until requests are taken.

        Raises:
            ServeError: the application did not start.
        """
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise ServeError("the OpenAI front could not start; its error is in the lines above")
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """Let running requests end for a few seconds, then stop."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(timeout=_GRACE_S * 2)
        self._socket.close()
