"""Triton's model control: loading and unloading models of a running server.

A load may carry files, code among them, so whoever may load models may run code as the server. Requests therefore need a
key, in a header that no web page can make a browser send.
"""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

from roundhouse.errors import ServeError

__all__ = ["CONTROL_HEADER", "ModelControl"]

CONTROL_HEADER = "roundhouse-control"
_ANSWER_TIMEOUT_S = 600.0
"""Triton answers a load when it has ended: weights may take long."""
_POLL_S = 0.05


class ModelControl:
    """Loads and unloads the models of one server.

    Args:
        host: where it listens.
        port: its HTTP port.
        key: what the server was started with.
    """

    def __init__(self, host: str, port: int, key: str) -> None:
        self._host = host
        self._port = port
        self.key = key

    def load(self, model: str) -> None:
        """Load a model of the repository and wait until it answers.

        Raises:
            ServeError: it cannot be loaded; the others go on.
        """
        self._post(f"/v2/repository/models/{model}/load")

    def unload(self, model: str, *, timeout_s: float = 60.0) -> None:
        """Unload a model and wait until nothing of it is left. Requests in flight are served first.

        Raises:
            ServeError: it is still there after ``timeout_s`` seconds.
        """
        self._post(f"/v2/repository/models/{model}/unload")
        deadline = time.monotonic() + timeout_s
        while self.states().get(model) not in (None, "UNAVAILABLE"):
            if time.monotonic() > deadline:
                raise ServeError(f"Triton has not unloaded {model} within {timeout_s:g} s")
            time.sleep(_POLL_S)

    def states(self) -> dict[str, str]:
        """The state of every model of the repository, in Triton's words: READY, LOADING, UNLOADING or UNAVAILABLE.

        Raises:
            ServeError: Triton does not tell.
        """
        index: list[dict[str, Any]] = json.loads(self._post("/v2/repository/index"))
        return {entry["name"]: entry.get("state", "UNAVAILABLE") for entry in index}

    def _post(self, path: str) -> bytes:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_ANSWER_TIMEOUT_S)
        try:
            connection.request("POST", path, headers={CONTROL_HEADER: self.key})
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServeError(f"Triton does not answer {path}: {error}") from None
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise ServeError(f"Triton refused {path}: {body.decode(errors='replace')}")
        return body
