from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from roundhouse.serve.openai.errors import ApiError
from roundhouse.serve.openai.result_stream import ResultStream


class Broken(grpc.RpcError):
    def details(self) -> str:
        return "the socket is closed"


class Source:
    """Gives numbers as they are let out, and knows whether it was cut off."""

    def __init__(self, *, breaks: bool = False) -> None:
        self.let_out: asyncio.Queue[int | None] = asyncio.Queue()
        self.cut_off = self.ended = False
        self._breaks = breaks

    async def results(self) -> AsyncIterator[tuple[Any, Any]]:
        try:
            while (number := await self.let_out.get()) is not None:
                yield number, None
            self.ended = True
        except asyncio.CancelledError:
            self.cut_off = True
            raise
        if self._breaks:
            raise Broken


def test_whoever_stops_waiting_does_not_cut_the_stream_off() -> None:
    async def run() -> None:
        source = Source()
        stream = ResultStream(source.results())
        source.let_out.put_nowait(1)
        reading = aiter(stream)
        assert await anext(reading) == (1, None)
        waiting = asyncio.ensure_future(anext(reading))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert not await stream.ended(0.01)
        source.let_out.put_nowait(2)
        source.let_out.put_nowait(None)
        assert await stream.ended(30)
        assert (source.ended, source.cut_off) == (True, False)

    asyncio.run(run())


def test_it_can_be_cut_off_as_the_last_resort() -> None:
    async def run() -> None:
        source = Source()
        stream = ResultStream(source.results())
        await asyncio.sleep(0)
        stream.cancel()
        assert await stream.ended(30)
        assert source.cut_off

    asyncio.run(run())


def test_a_connection_that_breaks_is_an_error_after_what_had_come() -> None:
    async def run() -> None:
        source = Source(breaks=True)
        source.let_out.put_nowait(1)
        source.let_out.put_nowait(None)
        reading = aiter(ResultStream(source.results()))
        assert await anext(reading) == (1, None)
        with pytest.raises(ApiError, match="the socket is closed") as caught:
            await anext(reading)
        assert (caught.value.status, caught.value.code) == (503, "unavailable")

    asyncio.run(run())
