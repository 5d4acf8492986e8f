"""Triton's model control: loading and unloading models of a running server.

A load may carry files, code among them, so whoever may load models may run code as the server. Requests to a server of ours
therefore need a key, in a header that no web page can make a browser send.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from roundhouse.errors import ServeError, UsageError

__all__ = ["CONTROL_HEADER", "ModelControl"]

CONTROL_HEADER = "roundhouse-control"
_ANSWER_TIMEOUT_S = 600.0
"""Triton answers a load when it has ended: weights may take long."""
_LOOK_TIMEOUT_S = 5.0
_POLL_S = 0.05


class ModelControl:
    """Loads and unloads the models of one server.

    Args:
        url: base URL of its HTTP endpoint.
        headers: what requests that change something need, such as a key.

    Raises:
        UsageError: that is no URL of a server.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise UsageError(f"{url!r} is no URL of a Triton server", hint="Write it like http://gpu-1:8000.")
        self.url = url.rstrip("/")
        self._secure = parts.scheme == "https"
        self._host, self._port, self._path = parts.hostname, port, parts.path.rstrip("/")
        self._headers = dict(headers or {})

    def load(self, model: str, *, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        """Load a model and wait until it answers.

        Args:
            model: its name.
            config: the whole config as JSON; None loads what the server's repository has.
            files: the model's files by path below its folder, such as ``1/model.py``; only with ``config``.

        Raises:
            ServeError: it cannot be loaded; the others go on.
        """
        given = {"config": config} if config is not None else {}
        given |= {f"file:{path}": base64.b64encode(content).decode() for path, content in (files or {}).items()}
        self._post(f"/v2/repository/models/{model}/load", json.dumps({"parameters": given}) if given else None)

    def unload(self, model: str, *, timeout_s: float = 60.0) -> None:
        """Unload a model and wait until nothing of it is left. Requests in flight are served first.

        Raises:
            ServeError: it is still there after ``timeout_s`` seconds.
        """
        self._post(f"/v2/repository/models/{model}/unload")
        deadline = time.monotonic() + timeout_s
        while self.states().get(model) not in (None, "UNAVAILABLE") or self.ready(model):
            if time.monotonic() > deadline:
                raise ServeError(f"Triton has not unloaded {model} within {timeout_s:g} s")
            time.sleep(_POLL_S)

    def states(self) -> dict[str, str]:
        """The state of every model of the repository, in Triton's words: READY, LOADING, UNLOADING or UNAVAILABLE.

        A model that was loaded from files alone is not among them.

        Raises:
            ServeError: Triton does not tell.
        """
        index: list[dict[str, Any]] = self._read(self._post("/v2/repository/index"))
        return {entry["name"]: entry.get("state", "UNAVAILABLE") for entry in index}

    def ready(self, model: str) -> bool:
        """Whether a model takes requests.

        Raises:
            ServeError: Triton does not answer.
        """
        return self._ask("GET", f"/v2/models/{model}/ready", timeout_s=_LOOK_TIMEOUT_S)[0] == http.client.OK

    def parameters(self, model: str) -> dict[str, str] | None:
        """The string parameters of a loaded model's config; None when it is not loaded.

        Raises:
            ServeError: Triton does not answer.
        """
        status, body = self._ask("GET", f"/v2/models/{model}/config", timeout_s=_LOOK_TIMEOUT_S)
        if status != http.client.OK:
            return None
        found: dict[str, dict[str, str]] = self._read(body).get("parameters", {})
        return {key: value.get("string_value", "") for key, value in found.items()}

    def _read(self, answer: bytes) -> Any:
        try:
            return json.loads(answer)
        except ValueError:
            raise ServeError(f"what answers at {self.url} is no Triton server: {answer[:100]!r}") from None

    def _post(self, path: str, body: str | None = None) -> bytes:
        status, answer = self._ask("POST", path, body=body)
        if status != http.client.OK:
            raise ServeError(f"Triton refused {path}: {answer.decode(errors='replace')}")
        return answer

    def _ask(
        self, method: str, path: str, *, body: str | None = None, timeout_s: float = _ANSWER_TIMEOUT_S
    ) -> tuple[int, bytes]:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=timeout_s)
        headers = self._headers if method == "POST" else {}
        try:
            connection.request(method, self._path + path, body=body, headers=headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServeError(f"Triton does not answer at {self.url}{path}: {error}") from None
        finally:
            connection.close()
