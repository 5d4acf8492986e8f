"""Requests that have not ended, and who gets their outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..engine.request import Chunk, Failure, Output, Request

__all__ = ["LiveRequests", "OnOutput"]

OnOutput = Callable[[Output], None]


@dataclass
class _Live:
    on_output: OnOutput
    answers: int
    """Still to end."""


class LiveRequests:
    """A request ends with a failure, or when each of its answers has a finish reason. Not safe for several threads."""

    def __init__(self) -> None:
        self._live: dict[str, _Live] = {}

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._live

    def __len__(self) -> int:
        return len(self._live)

    def add(self, request: Request, on_output: OnOutput) -> None:
        """A request was handed over."""
        self._live[request.request_id] = _Live(on_output, request.sampling.n)

    def receiver(self, output: Output) -> OnOutput | None:
        """Who gets an output, or None when its request has ended. The output that ends a request makes it forgotten."""
        live = self._live.get(output.request_id)
        if live is None:
            return None
        ends = isinstance(output, Failure)
        if isinstance(output, Chunk) and output.finish_reason is not None:
            live.answers -= 1
            ends = live.answers <= 0
        if ends:
            del self._live[output.request_id]
        return live.on_output

    def clear(self) -> dict[str, OnOutput]:
        """Forget all requests, and say who they were."""
        lost = {request_id: live.on_output for request_id, live in self._live.items()}
        self._live.clear()
        return lost
