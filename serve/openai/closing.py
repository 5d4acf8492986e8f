"""Ends the requests that are still being answered when the front closes, in a form that clients understand."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import ApiError
from .responses import event_of

__all__ = ["EndAtClosing"]

_LAST_WORDS_S = 1.0


class EndAtClosing:
    """ASGI middleware. A request that lives when ``closing`` is set gets a 503, or an error as the last event of its stream.

    Args:
        app: the application.
        closing: set, inside the event loop, shortly before the server cuts everything off.
    """

    def __init__(self, app: ASGIApp, closing: asyncio.Event) -> None:
        self._app = app
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        response = _Response(send)
        working = asyncio.ensure_future(self._app(scope, receive, response.send))
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait({working, closing}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                with suppress(TimeoutError):  # a client that does not read
                    async with asyncio.timeout(_LAST_WORDS_S):
                        await response.end(working, scope, receive)
        finally:
            closing.cancel()
            working.cancel()
            await asyncio.wait({working})  # what it holds is let go before the server closes what that needs
        if not working.cancelled():
            working.result()


class _Response:
    """What has been sent of one response."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = self._open_stream = self._taken_over = False

    async def send(self, message: Message) -> None:
        """Pass on what the application sends, until :meth:`end` takes over."""
        if self._taken_over:
            return
        await self._send(message)
        if message["type"] == "http.response.start":
            self._begun = True
            self._open_stream = Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
        elif not message.get("more_body", False):
            self._open_stream = False

    async def end(self, working: asyncio.Future[None], scope: Scope, receive: Receive) -> None:
        """Say why it ends here. An answer that is whole, and only on its way, goes on."""
        if self._begun and not self._open_stream:
            await asyncio.wait({working})
            return
        self._taken_over = True
        working.cancel()
        error = ApiError(503, "the server is being stopped", code="unavailable")
        if self._begun:
            await self._send({"type": "http.response.body", "body": event_of(error.body).encode()})
        else:
            await error.response(scope, receive, self._send)
