"""One request's results on a gRPC stream of its own, read whether anybody waits for them or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from .errors import ApiError

__all__ = ["ResultStream"]


class ResultStream:
    """Reads a stream to its end in a task of its own.

    Whoever stops waiting for a result (a client that has gone, a cancelled task) must not cancel the stream with that: a
    stream that is cancelled at the moment at which it ends can take Triton 2.51 down, or stay there as a trace for which an
    unload waits for ever.

    Args:
        results: pairs of a result and an error, as Triton's client gives them.
    """

    def __init__(self, results: Any) -> None:
        self._results = results
        self._read: asyncio.Queue[tuple[Any, Any] | None] = asyncio.Queue()
        self._broken: grpc.RpcError | None = None
        self._reader = asyncio.ensure_future(self._read_all())

    async def __aiter__(self) -> AsyncIterator[tuple[Any, Any]]:
        """Each result with None, or None with an error of the server, up to the end.

        Raises:
            ApiError: the connection broke.
        """
        while (item := await self._read.get()) is not None:
            yield item
        if self._broken is not None:
            raise ApiError(503, f"Triton does not answer: {_details(self._broken)}", code="unavailable")

    async def ended(self, within_s: float) -> bool:
        """Wait for the end of the stream, and say whether it has come; ``within_s`` is in seconds."""
        return bool((await asyncio.wait({self._reader}, timeout=within_s))[0])

    def cancel(self) -> None:
        """Cut the stream off, as the last resort."""
        self._reader.cancel()

    async def _read_all(self) -> None:
        try:
            async for item in self._results:
                self._read.put_nowait(item)
        except grpc.RpcError as error:
            self._broken = error
        finally:
            self._read.put_nowait(None)


def _details(error: grpc.RpcError) -> str:
    details = getattr(error, "details", None)
    return str(details()) if callable(details) else str(error)
