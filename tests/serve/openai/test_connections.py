"""Connections that clients keep for their next request."""

from __future__ import annotations

import time
from http.client import HTTPConnection
from urllib.parse import urlsplit

from fronts import Script, serving, template_of


def test_an_idle_connection_is_kept_longer_than_clients_keep_theirs(tiny_model: object) -> None:
    """httpx, below the official client, gives up idle connections after 5 s. A server that does so at the same moment resets
    a request now and then."""
    with serving({"m": (template_of(tiny_model("llama")), Script())}) as address:  # type: ignore[operator]
        at = urlsplit(address)
        connection = HTTPConnection(at.hostname or "", at.port, timeout=20)
        for idle_s in (6.0, 0.0):
            connection.request("GET", "/healthz")
            kept = connection.sock
            assert connection.getresponse().read() == b'{"status":"ok"}'
            assert connection.sock is kept is not None
            time.sleep(idle_s)
        connection.close()
