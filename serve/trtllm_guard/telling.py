"""What rank 0 tells of the page check: ``/ready`` and ``/metrics`` on a port of its own, under this package's names.

TensorRT-LLM's server knows nothing of it, and would call itself ready without it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from roundhouse.errors import SetupError

from ..triton.health import UNGUARDED
from ..triton.metrics import GUARD_ALIVE, METRICS, PAGES, PAGES_QUARANTINED
from .book import PageBook, PageCounts

__all__ = ["GuardServer", "GuardState", "exposition"]

_MOST_QUARANTINED = 0.05
_STARTING = "not every rank has the page check in place yet"
_NO_PAGES = PageCounts(free=0, used=0, cached=0, quarantined=0)


class GuardState:
    """What has become of the check in this rank. Written by the executor's thread, read by the server's."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.ranks = 0
        """Ranks that have the check in place; 0 until all of them do."""
        self.steps = self.checks = self.mismatches = 0
        self.unguarded = False
        """Whether a step ran that was not checked. It stays so until the engine is started again."""
        self.book: PageBook | None = None

    def pages(self) -> PageCounts:
        """What has become of the KV pages."""
        return self.book.counts() if self.book else _NO_PAGES

    def problem(self) -> str | None:
        """Why the engine should get no requests, or None."""
        if not self.ranks:
            return _STARTING
        if self.unguarded:
            return UNGUARDED
        pages = self.pages()
        total = pages.free + pages.used + pages.cached + pages.quarantined
        if pages.quarantined > _MOST_QUARANTINED * total:
            return f"{pages.quarantined} of {total} KV pages are quarantined; the engine must be restarted"
        return None


def exposition(state: GuardState) -> str:
    """The metrics in Prometheus' text form."""
    return "".join(_lines(state))


def _lines(state: GuardState) -> Iterator[str]:
    pages = state.pages()
    values = {
        GUARD_ALIVE: int(bool(state.ranks) and not state.unguarded),
        "roundhouse_steps_total": state.steps,
        "roundhouse_tag_checks_total": state.checks,
        "roundhouse_tag_mismatches_total": state.mismatches,
        **dict(zip(PAGES, (pages.free, pages.used, pages.cached), strict=False)),
        PAGES_QUARANTINED: pages.quarantined,
    }
    label = json.dumps(state.engine)  # JSON escapes what Prometheus does
    for name, _, kind, what in METRICS:
        if name in values:
            yield f"# HELP {name} {what}\n# TYPE {name} {kind}\n{name}{{model={label}}} {values[name]}\n"


class GuardServer:
    """Answers on an address until it is closed.

    Raises:
        SetupError: nothing can listen there.
    """

    def __init__(self, state: GuardState, address: tuple[str, int]) -> None:
        self.state = state
        handler = type("Handler", (_Handler,), {"state": state})
        try:
            self._server = ThreadingHTTPServer(address, handler)
        except OSError as error:
            host, port = address
            hint = "Give another address in ROUNDHOUSE_GUARD_METRICS."
            raise SetupError(f"the page check cannot listen on {host}:{port}: {error.strerror}", hint=hint) from None
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="page-check", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    state: GuardState

    def do_GET(self) -> None:
        if self.path == "/ready":
            problem = self.state.problem()
            ready = {"ready": problem is None, "ranks": self.state.ranks, "checks": self.state.checks, "problem": problem}
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK, json.dumps(ready), "application/json")
        elif self.path == "/metrics":
            self._answer(HTTPStatus.OK, exposition(self.state), "text/plain; version=0.0.4; charset=utf-8")
        else:
            self._answer(HTTPStatus.NOT_FOUND, "there are /ready and /metrics\n", "text/plain; charset=utf-8")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # http.server's name
        """Probes come every few seconds: nothing of them belongs into a log."""

    def _answer(self, status: HTTPStatus, body: str, kind: str) -> None:
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
