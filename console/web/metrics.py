"""Counts each request, and tells Prometheus what the console and its database know.

``/metrics`` asks for the scope ``read``, from everywhere: a proxy on this host, a tunnel and every other user of this machine
come from the loopback address too, so an address is nobody's name. Prometheus sends a token of a viewer
(``authorization: credentials_file``).

===============================================  ============================  ================================================
name                                             labels                        what
===============================================  ============================  ================================================
``roundhouse_console_requests_total``            method, route, status         answers; ``route`` as the code writes it
``roundhouse_console_request_seconds``           method, route                 histogram: until the answer begins
``roundhouse_jobs``                              kind, state                   jobs
``roundhouse_workers``                           state                         workers that are alive, and that are gone
``roundhouse_deployments``                       state                         deployments; ``silent``: nobody tells of it
``roundhouse_integrity_events``                  kind                          rows that page checks stopped
``roundhouse_deployment_tag_mismatches``         deployment, name              of each running engine, since it began
``roundhouse_disk_free_bytes``                   host, home                    as the workers that are alive last said
``roundhouse_disk_bytes``                        host, home                    likewise
===============================================  ============================  ================================================

What is read from the database is read when Prometheus asks, in five statements.
"""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..observed import observe
from .request_metrics import RequestMetrics
from .state import state_of
from .who import Reading, needs

__all__ = ["CountRequests", "router"]

router = APIRouter()
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_FAULT = 500


class CountRequests:
    """ASGI middleware: counts what comes, by route and not by path: nobody can make names here.

    Args:
        app: the application.
        metrics: where it is counted.
    """

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        answered = False

        def count(status: int) -> None:
            nonlocal answered
            answered = True
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.answered(method, _route(scope), status, time.perf_counter() - began)

        async def send_and_count(message: Message) -> None:
            if message["type"] == "http.response.start":
                count(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, send_and_count)
        except Exception:
            if not answered:
                count(_FAULT)
            raise


def _route(scope: Scope) -> str:
    route = scope.get("route")
    if route is not None:
        return str(getattr(route, "path", "other"))
    return "/static" if scope["path"].startswith("/static/") else "other"


@router.get("/metrics", dependencies=[needs("read")])
def metrics(request: Request, session: Reading) -> Response:
    """Everything, as Prometheus reads it."""
    registry = CollectorRegistry()
    registry.register(observe(session))
    text = generate_latest(state_of(request).requests.registry) + generate_latest(registry)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
