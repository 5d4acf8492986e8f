"""Gives an answer to a client, and lets go of the request behind it when the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import aclosing
from typing import TypeVar

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from .errors import ApiError
from .merging import merged
from .responses import Answer
from .triton_client import Piece

__all__ = ["respond"]

T = TypeVar("T")


async def respond(
    answer: Answer, streams: Sequence[AsyncGenerator[Piece, None]], request: Request, *, stream: bool
) -> Response:
    """Answer once, or as a stream whose first piece has come, so that a request that fails at once gets a proper status.

    Raises:
        ApiError: as the streams do, before the response has begun.
    """
    pieces = merged(streams)
    if not stream:
        async with aclosing(pieces):
            return JSONResponse(await _unless_disconnected(answer.whole(pieces), request))
    first = await _unless_disconnected(anext(pieces), request)
    events = _closing(answer.events(first, pieces), pieces)
    return StreamingResponse(events, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


async def _unless_disconnected(work: Awaitable[T], request: Request) -> T:
    """Await some work; when the client goes away first, cancel it, and with it the requests behind it.

    Raises:
        ApiError: the client has gone; nobody will read it.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ApiError(499, "the client went away", code="cancelled")
    finally:
        leaving.cancel()
        working.cancel()
        await asyncio.wait({working})  # what it holds is let go before anything else happens


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _closing(events: AsyncIterator[str], pieces: AsyncGenerator[tuple[int, Piece], None]) -> AsyncIterator[str]:
    """Pass events on and, however the response ends, close the requests behind them."""
    async with aclosing(pieces):
        async for event in events:
            yield event
