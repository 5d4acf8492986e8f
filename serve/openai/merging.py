"""Several streams of pieces as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from .triton_client import Piece

__all__ = ["merged"]

_AHEAD = 64
"""Pieces that wait for a slow reader, over all streams."""

Numbered = tuple[int, Piece]


async def merged(streams: Sequence[AsyncGenerator[Piece, None]]) -> AsyncGenerator[Numbered, None]:
    """Yield the pieces of all streams as they come, each with its stream's number. Closing this closes all of them.

    Raises:
        Exception: what the first stream that fails raises; the others are closed.
    """
    if len(streams) == 1:
        async with aclosing(streams[0]) as only:
            async for piece in only:
                yield 0, piece
        return
    queue: asyncio.Queue[Numbered | Exception | None] = asyncio.Queue(_AHEAD)
    readers = [asyncio.create_task(_read(number, stream, queue)) for number, stream in enumerate(streams)]
    try:
        live = len(readers)
        while live:
            arrived = await queue.get()
            if arrived is None:
                live -= 1
            elif isinstance(arrived, Exception):
                raise arrived
            else:
                yield arrived
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def _read(number: int, stream: AsyncGenerator[Piece, None], queue: asyncio.Queue[Numbered | Exception | None]) -> None:
    """Put a stream's pieces into the queue, and what it ended with: None, or what it raised."""
    ending: Exception | None = None
    async with aclosing(stream) as own:
        try:
            async for piece in own:
                await queue.put((number, piece))
        except Exception as error:  # the reader of the queue raises it, whatever it is
            ending = error
    await queue.put(ending)
