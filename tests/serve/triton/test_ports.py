"""Ports that are bound, and bound again."""

from __future__ import annotations

import socket

from roundhouse.serve.triton.ports import bind_port


def test_a_free_port_can_be_had_again_after_connections_to_it() -> None:
    first = bind_port("127.0.0.1", 0)
    first.listen()
    port = first.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)) as client:
        accepted, _ = first.accept()
        accepted.close()  # who closes first keeps the connection's remains for a minute
        assert client.recv(1) == b""
    first.close()
    bind_port("127.0.0.1", port).close()
