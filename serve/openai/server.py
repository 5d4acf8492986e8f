"""Runs the web application in a thread of this process."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import uvicorn
from fastapi import FastAPI

from roundhouse.errors import ServeError

from ..triton.ports import bind_port

__all__ = ["GRACE_S", "FrontServer"]

_POLL_S = 0.02
_IDLE_S = 75
"""An idle connection is kept longer than clients keep theirs (5 s for the official one): who closes first must be the client,
or its next request may go into a connection that is just being closed."""
GRACE_S = 5.0
"""What running requests get to end when the front stops."""
_ENDING_S = 3
"""What requests get after the grace, to say that they end."""


class _Server(uvicorn.Server):
    """Uvicorn, which sets an event when requests have had their grace, a little before it cuts them off."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event) -> None:
        super().__init__(config)
        self._closing = closing
        self.grace_s = GRACE_S

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop serving."""
        timer = asyncio.get_running_loop().call_later(self.grace_s, self._closing.set)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()


class FrontServer:
    """Uvicorn on a port that is bound before it starts, so that 0 is safe and a taken port is an error at once.

    Args:
        app: the application, made by :func:`roundhouse.serve.openai.app.create_app`.
        host: the address to listen on.
        port: 0 asks for a free one.

    Raises:
        ServeError: the port is taken.
    """

    def __init__(self, app: FastAPI, *, host: str, port: int) -> None:
        self._socket = bind_port(host, port)
        self.port = int(self._socket.getsockname()[1])
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="on",
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=int(GRACE_S + _ENDING_S),
            ws="none",
        )
        self._server = _Server(config, app.state.closing)
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

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Let running requests end for so many seconds, end the others with an error, then stop."""
        self._server.grace_s = grace_s
        self._server.config.timeout_graceful_shutdown = int(grace_s + _ENDING_S)
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(timeout=(grace_s + _ENDING_S) * 2)
        self._socket.close()
