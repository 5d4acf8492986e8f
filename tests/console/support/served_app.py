"""An application on a port of its own, and how a command for it ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

__all__ = ["Answer", "RemoteCommand", "ServedApp"]


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


RemoteCommand = Callable[..., Answer]


class ServedApp:
    """An application on a free port, served in a thread."""

    def __init__(self, app: FastAPI) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=30)
        self._socket.close()
