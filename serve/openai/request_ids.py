"""Request ids and session affinity: taken from a request's headers, and said again in its response's."""

from __future__ import annotations

import re
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["REQUEST_ID", "SESSION_AFFINITY", "RequestIds"]

REQUEST_ID, SESSION_AFFINITY = "x-request-id", "x-session-affinity"
_PLAIN = re.compile(r"[!-~]{1,128}")
"""What is worth sending back: visible ASCII, not too long. A header that is not is as good as none."""


class RequestIds:
    """ASGI middleware. Handlers find both in ``request.state``: ``request_id``, never empty, and ``session_affinity``.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _plain(headers.get(REQUEST_ID)) or uuid.uuid4().hex
        session = _plain(headers.get(SESSION_AFFINITY))
        scope.setdefault("state", {}).update(request_id=request_id, session_affinity=session)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                answer[REQUEST_ID] = request_id
                if session:
                    answer[SESSION_AFFINITY] = session
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _plain(value: str | None) -> str:
    return value if value is not None and _PLAIN.fullmatch(value) else ""
