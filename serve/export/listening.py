"""Addresses that an export has a server listen on, and options that a deployment would have no use for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from roundhouse.errors import UsageError

from ..trtllm_arguments import TARGET

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine
    from roundhouse.build.recipe import Guard

__all__ = ["TRITON_PORTS", "port_of", "require_address", "require_apart", "require_useful"]

TRITON_PORTS = {"Triton's HTTP": 8000, "Triton's gRPC": 8001, "Triton's metrics": 8002}
"""Those that it listens on where its command names none."""

_LAST_PORT = 65535
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?\]?")
_GUARD_METRICS = "--guard-metrics"


def require_address(host: str, port: int) -> None:
    """See that a server can be told to listen here.

    Raises:
        UsageError: no address, or a number that is no port.
    """
    if not _HOST.fullmatch(host):
        raise UsageError(f"--host {host!r} is no address", hint="Give one such as 0.0.0.0.")
    if not 1 <= port <= _LAST_PORT:
        raise UsageError(f"--port {port}: a port is a number from 1 to {_LAST_PORT}")


def port_of(metrics: str) -> int:
    """The port of the page check's address.

    Raises:
        UsageError: it is no ``host:port``.
    """
    host, _, port = metrics.rpartition(":")
    if not _HOST.fullmatch(host) or not re.fullmatch("[0-9]+", port) or not 1 <= int(port) <= _LAST_PORT:
        raise UsageError(f"{metrics} is no address for the page check", hint="Write it like 0.0.0.0:8003.")
    return int(port)


def require_apart(metrics: str, guard: Guard, taken: Mapping[str, int]) -> None:
    """See that the page check, where there is one, has a port of its own.

    Args:
        metrics: where it answers, as ``host:port``.
        guard: that the deployment has.
        taken: ports of the server, by whose they are.

    Raises:
        UsageError: naming whose it is.
    """
    port = port_of(metrics)
    for whose, other in taken.items():
        if guard != "off" and port == other:
            raise UsageError(f"{_GUARD_METRICS} {metrics}: {whose} port is {other}, too", hint="Give each a port of its own.")


def require_useful(engine: Engine, guard: Guard, given: Mapping[str, object]) -> None:
    """See that options for the page check in TensorRT-LLM, and for our own engine process, do something.

    Args:
        engine: that is exported.
        guard: that the deployment has.
        given: options with their values; None was not given.

    Raises:
        UsageError: naming those that do nothing.
    """
    names = [name for name, value in given.items() if value is not None]
    ours = [name for name in names if name == "--python"]
    checks = [name for name in names if name != "--python"]
    identity, target = engine.manifest.id, engine.manifest.recipe.target
    if target == TARGET and ours:
        raise UsageError(f"--python: engine {identity} is for {target}, which runs in TensorRT-LLM's own Python")
    if target != TARGET and checks:
        raise UsageError(f"{', '.join(checks)}: engine {identity} is for {target}, whose engine process checks pages itself")
    if guard == "off" and checks:
        raise UsageError(
            f"{', '.join(checks)}: with guard off there is no page check", hint="Leave it out, or give --guard tags."
        )
