"""Refuses request bodies above a limit, before anything parses them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import ApiError

__all__ = ["BodyLimit"]


def _too_large(problem: str) -> ASGIApp:
    return ApiError(413, problem, code="request_too_large").response


class BodyLimit:
    """ASGI middleware. It takes the whole body before the application runs, so a refusal is always the first answer.

    Args:
        app: the application.
        limit: most bytes of a body.
        refuse: makes the answer to a larger one, from a sentence that says so.
        limits: of single paths, where theirs is another.
    """

    def __init__(
        self,
        app: ASGIApp,
        limit: int,
        refuse: Callable[[str], ASGIApp] = _too_large,
        limits: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._app = app
        self._limit = limit
        self._refuse = refuse
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limits.get(scope["path"], self._limit)
        messages = await self._take_body(scope, receive, limit)
        if messages is None:
            await self._refuse(f"the body is larger than {limit:,} bytes")(scope, receive, send)
            return

        async def replay() -> Message:
            return messages.popleft() if messages else await receive()

        await self._app(scope, replay, send)

    async def _take_body(self, scope: Scope, receive: Receive, limit: int) -> deque[Message] | None:
        """The messages that hold the body, or None when it is too large."""
        if any(name == b"content-length" and int(value) > limit for name, value in scope["headers"]):
            return None
        messages: deque[Message] = deque()
        size, more = 0, True
        while more:
            messages.append(await receive())
            size += len(messages[-1].get("body", b""))
            if size > limit:
                return None
            more = messages[-1].get("more_body", False)  # a client that left sends no more either
        return messages
