"""What the benchmark and its engine loop, in a process of its own, say to each other: a JSON object a line."""

from __future__ import annotations

from typing import Any

import msgspec

from .measuring import MeasuredRequest

__all__ = ["Broken", "Done", "FromLoop", "Measure", "Ready", "Stop", "ToLoop", "Told"]


class Measure(msgspec.Struct, frozen=True, tag="measure"):
    """Send the requests of a point."""

    workload: dict[str, Any]
    concurrency: int
    requests: int
    seed: int
    timeout_s: float


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """End what is in flight; it is answered by an empty :class:`Done`."""


ToLoop = Measure | Stop


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The engine is loaded."""


class Told(msgspec.Struct, frozen=True, tag="told"):
    """What the engine counts, as of now: the fields of :class:`~roundhouse.serve.triton.samples.Sample`."""

    sample: dict[str, Any]


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The requests of a point; what the engine counted then was told before."""

    requests: list[MeasuredRequest]


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """Why the process ends."""

    message: str
    hint: str | None = None


FromLoop = Ready | Told | Done | Broken
