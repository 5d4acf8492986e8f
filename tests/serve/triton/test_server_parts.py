from __future__ import annotations

import pytest

from roundhouse.errors import ServeError
from roundhouse.serve.triton.log import ServerLog
from roundhouse.serve.triton.ports import TritonPorts, bind_port, choose_ports

HOST = "127.0.0.1"


def test_free_ports_are_distinct_and_given_ones_are_kept() -> None:
    with bind_port(HOST, 0) as free:
        given = free.getsockname()[1]
    ports = choose_ports(TritonPorts(http=given), HOST)
    assert ports.http == given
    assert 0 not in ports.chosen
    assert len(set(ports.chosen)) == 3


def test_a_taken_port_is_named() -> None:
    with bind_port(HOST, 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServeError, match=f"cannot listen on {HOST}:{port}"):
            choose_ports(TritonPorts(grpc=port), HOST)


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "::1", "a" * 70])
def test_a_host_that_cannot_be_bound_is_named(host: str) -> None:
    with pytest.raises(ServeError, match="cannot listen on") as caught:
        bind_port(host, 0)
    assert host in caught.value.message
    assert "IPv4 address" in (caught.value.hint or "")


def log(*lines: str) -> ServerLog:
    kept = ServerLog()
    for line in lines:
        kept.take(line)
    return kept


def test_the_log_shows_what_went_wrong() -> None:
    kept = log(
        "I1129 14:52:11.066297 1 server.cc:604] fine",
        'E1129 14:52:11.066944 1 server.cc:241] "CudaDriverHelper has not been initialized."',
        "E1129 14:52:12.0 1 model_lifecycle.cc:642] failed to load 'm' version 1: Internal: engine e1 is damaged",
        "I1129 14:52:13.0 1 server.cc:345] bye",
        "error: creating server: Internal - failed to load all models",
    )
    assert kept.reasons() == [
        "E1129 14:52:12.0 1 model_lifecycle.cc:642] failed to load 'm' version 1: Internal: engine e1 is damaged",
        "error: creating server: Internal - failed to load all models",
    ]
    assert not kept.port_taken


def test_a_log_without_a_problem_shows_its_end() -> None:
    assert log("one", "two").reasons() == ["one", "two"]


def test_a_taken_port_is_seen_in_the_log() -> None:
    assert log("E1129 1 main.cc] failed to start HTTP service: Unavailable - Socket '127.0.0.1:8000' already in use").port_taken
