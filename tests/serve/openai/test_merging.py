"""Several streams as one: everything arrives, in each stream's order; failing and closing end them all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from roundhouse.serve.openai.errors import ApiError
from roundhouse.serve.openai.merging import merged
from roundhouse.serve.openai.triton_client import Piece


class Streams:
    """Streams that count what has become of them."""

    def __init__(self) -> None:
        self.closed = 0

    async def of(self, *texts: str, then: str = "end") -> AsyncGenerator[Piece, None]:
        try:
            for text in texts:
                await asyncio.sleep(0)
                yield Piece(0, text, None, None, 1, 0, 1, (1,), None)
            if then == "fail":
                raise ApiError(503, "down", code="unavailable")
            if then == "hang":
                await asyncio.Event().wait()
        finally:
            self.closed += 1


@pytest.mark.parametrize("count", [1, 2, 5])
def test_all_pieces_arrive_in_order(count: int) -> None:
    async def run() -> None:
        streams = Streams()
        texts = [[f"{number}.{at}" for at in range(100 + number)] for number in range(count)]
        found: list[list[str]] = [[] for _ in range(count)]
        async for number, piece in merged([streams.of(*each) for each in texts]):
            found[number].append(piece.text)
        assert found == texts
        assert streams.closed == count

    asyncio.run(run())


@pytest.mark.parametrize("others", [0, 1, 3])
def test_one_that_fails_ends_them_all(others: int) -> None:
    async def run() -> None:
        streams = Streams()
        pieces = merged([*(streams.of("a", then="hang") for _ in range(others)), streams.of("b", then="fail")])
        texts: list[str] = []

        async def read() -> None:
            async for _, piece in pieces:
                texts.append(piece.text)

        with pytest.raises(ApiError, match="down"):
            await read()
        assert "b" in texts
        assert streams.closed == others + 1

    asyncio.run(run())


@pytest.mark.parametrize("count", [1, 4])
def test_closing_it_closes_them_all(count: int) -> None:
    async def run() -> None:
        streams = Streams()
        async with aclosing(merged([streams.of("a", then="hang") for _ in range(count)])) as pieces:
            for _ in range(count):
                await anext(pieces)
        assert streams.closed == count

    asyncio.run(run())


def test_a_slow_reader_holds_the_streams_back() -> None:
    async def run() -> None:
        given = 0

        async def endless() -> AsyncGenerator[Piece, None]:
            nonlocal given
            while True:
                given += 1
                yield Piece(0, "a", None, None, 1, 0, 1, (1,), None)
                await asyncio.sleep(0)

        async with aclosing(merged([endless(), endless()])) as pieces:
            await anext(pieces)
            for _ in range(1000):
                await asyncio.sleep(0)
            assert given < 200

    asyncio.run(run())
