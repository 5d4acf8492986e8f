"""What is empty in an address is left out: a form sends all of its fields, also those that nobody filled in."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["EmptyIsLeftOut"]


class EmptyIsLeftOut:
    """ASGI middleware that takes parameters without a value out of the query, for pages and API alike.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan."""
        if scope["type"] == "http" and scope["query_string"]:
            given = scope["query_string"].split(b"&")
            scope = {**scope, "query_string": b"&".join(each for each in given if each.partition(b"=")[2])}
        await self._app(scope, receive, send)
