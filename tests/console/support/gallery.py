"""A page with every macro in every state, served as the console serves its pages."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from roundhouse.console.access.actor import Actor
from roundhouse.console.page_maps.cells import Cell, Cells, counted_cells
from roundhouse.console.page_maps.records import PoolPages
from roundhouse.console.paging import Paged
from roundhouse.console.web.chips import CHIPS
from roundhouse.console.web.guards import SecureHeaders
from roundhouse.console.web.navigation import Attention, navigation
from roundhouse.console.web.rendering import STATIC, Templates, static_base
from roundhouse.serve.page_map import PageState

NOW = datetime.now(UTC)


@dataclass(frozen=True)
class StageShown:
    name: str
    state: str
    what: str
    begins: float | None = None
    seconds: float | None = None
    done: float | None = None
    left: float | None = None


@dataclass(frozen=True)
class LineShown:
    number: int
    text: str


STAGES = [
    StageShown("import", "done", "HuggingFaceTB/SmolLM2-135M, 30 layers", 0.0, 2.4),
    StageShown("calibrate", "done", "128 texts of 512 tokens", 2.4, 41.8),
    StageShown("quantize", "running", "layer 17 of 30: mlp.down_proj", 44.2, 63.0, 0.566, 48.0),
    StageShown("measure", "waiting", "quality against the base"),
    StageShown("publish", "waiting", "hash, write the manifest, rename"),
]
FAILED = [StageShown("import", "done", "", 0.0, 2.4), StageShown("calibrate", "failed", "out of memory", 2.4, 9.0)]
WORDS = ("layer 12: q_proj scale 0.0173, error 0.41%", "layer 12: k_proj scale 0.0211, error 0.38%")
LINES = [
    LineShown(1001, "roundhouse build smollm2-135m-int4 on gpu-03, attempt 1"),
    *(LineShown(1002 + i, f"2025-11-30 03:10:{i:02d} {WORDS[i % 2]}") for i in range(22)),
    LineShown(1024, "WARNING: lm_head is tied to the embedding; it stays bf16"),
    LineShown(1025, "a long line that goes on " + "and on " * 40),
]
ENDED = [
    LineShown(1, "roundhouse build qwen3-0.6b on gpu-03, attempt 2"),
    LineShown(2, "loading 2 shards <script>document.title = 'no'</script>"),
    LineShown(3, "Traceback (most recent call last):"),
    LineShown(4, "torch.OutOfMemoryError: 1.2 GiB wanted, 0.9 GiB free"),
    *(LineShown(5 + i, f"cleaning up temporary file {i}") for i in range(40)),
]
COUNTS: dict[PageState, int] = {"used": 231, "shared": 64, "quarantined": 3, "free": 470}

LARGE = PoolPages(
    deployment_id="",
    at=None,
    asked=False,
    pages=1_112_012,
    counts={"used": 900_000, "shared": 12_000, "quarantined": 12, "free": 200_000},
)


def page(path: str, theme: str, danger_open: bool = False) -> str:
    """The gallery's HTML."""
    actor = Actor(1, "ada", "admin", "browser", "127.0.0.1", form_token="token")
    speed = [80 + 20 * math.sin(i / 5) for i in range(60)]
    names = ("name", "id", "target", "weights", "kv", "size", "kv_tokens", "agreement", "state", "speed", "at")
    rows = [
        (
            "smollm2-135m-int4",
            "3f9a1c0b7d2e4468",
            "torch",
            "int4_awq g64",
            "fp8",
            116_600_000,
            131_072,
            0.973,
            "present",
            speed,
            200,
        ),
        (
            "smollm2-135m-bf16",
            "81c2d0aa94b1e7f3",
            "torch",
            "bf16",
            "bf16",
            269_060_552,
            65_536,
            1.0,
            "damaged",
            speed[::-1],
            8_000,
        ),
        (
            "kimi-k2-nvfp4",
            "c07be1d5528f9a10",
            "trtllm-pytorch",
            "nvfp4",
            "fp8",
            594_000_000_000,
            2_097_152,
            None,
            "not measured",
            [],
            9e6,
        ),
    ]
    return Templates(Path(__file__).parent / "templates").fragment(
        "gallery.html",
        actor=actor,
        form_token="token",
        nav=navigation("/builds", actor, Attention(building=2, serving=1, failing=1)),
        theme=theme,
        flash=None,
        path=path,
        asked_at=NOW - timedelta(seconds=190),
        stages=STAGES,
        lines=LINES,
        ended_lines=ENDED,
        counts=COUNTS,
        drawn=Cells(
            tuple(
                Cell(state, f"page {number}: {state}, request {number % 7}", marked=number == 40)
                for number, state in enumerate(state for state, count in COUNTS.items() for _ in range(count))
            ),
            1,
        ),
        large=LARGE,
        large_drawn=counted_cells(LARGE, 1536),
        rows=[dict(zip(names, (*row[:-1], NOW - timedelta(seconds=row[-1])), strict=True)) for row in rows],
        sort="-created",
        url=lambda **changed: "/gallery?" + "&".join(f"{name}={value}" for name, value in changed.items()),
        paged=Paged(items=tuple(rows), total=10_432, page=3, size=50),
        all_states=list(CHIPS),
        danger_open=danger_open,
        icon_names=re.findall(r'<symbol id="([^"]+)"', (STATIC / "icons.svg").read_text()),
    )


class Gallery:
    """What the gallery's pages get from the server, and what they asked for."""

    def __init__(self) -> None:
        self.log_requests: list[tuple[str | None, str | None]] = []
        """``after`` and ``Last-Event-ID`` of each request for the log."""
        self.log_refusals = 0
        """How many requests for the log get no stream, as from a proxy of a console that restarts."""
        self.posts: list[dict[str, Any]] = []
        self.address = ""

    def app(self) -> Starlette:
        """The application."""
        routes = [
            Route("/gallery", self._page, methods=["GET", "POST"]),
            Route("/cancel", self._page, methods=["POST"]),
            Route("/samples", self._samples),
            Route("/live", self._live),
            Route("/log", self._log),
            Mount(static_base(), StaticFiles(directory=STATIC)),
        ]
        return Starlette(routes=routes, middleware=[Middleware(SecureHeaders, by_https=False)])

    async def _page(self, request: Request) -> HTMLResponse:
        if request.method == "POST":
            self.posts.append(dict(await request.form()))
        theme = request.cookies.get("roundhouse_theme", "system")
        return HTMLResponse(page(request.url.path, theme, "danger" in request.query_params))

    async def _samples(self, request: Request) -> JSONResponse:
        at = [NOW.timestamp() - 900 + 5 * i for i in range(180)]
        series = {
            "tokens_per_s": [max(0.0, 80 + 25 * math.sin(i / 9)) for i in range(180)],
            "prompt_tokens_per_s": [max(0.0, 160 * math.sin(i / 17)) if i > 30 else None for i in range(180)],
        }
        return JSONResponse({"at": at, "series": series})

    async def _live(self, request: Request) -> StreamingResponse:
        values = {"tokens_per_s": 91.7, "running": 7, "waiting": 1234, "ttft_s": 0.318, "pages": 0.5, "kv_bytes": 133_333_333}
        text = f"data: {json.dumps({'at': NOW.timestamp(), 'values': values})}\n\nevent: end\ndata: {{}}\n\n"
        return _events(text)

    async def _log(self, request: Request) -> Response:
        last = request.headers.get("last-event-id")
        self.log_requests.append((request.query_params.get("after"), last))
        if self.log_refusals:
            self.log_refusals -= 1
            return Response(status_code=502)
        begin = int(last or request.query_params.get("after") or 0)
        if last is None:  # the connection breaks after two lines; the browser comes again, and gets one of them twice
            return _events("retry: 50\n\n" + _line(begin + 1, "resumed") + _line(begin + 2, "<b>no markup</b>"))
        return _events(_line(begin, "twice") + _line(begin + 1, "Error: the last line") + "event: end\ndata: {}\n\n")


def _line(number: int, text: str) -> str:
    return f"id: {number}\ndata: {json.dumps({'number': number, 'text': text})}\n\n"


def _events(text: str) -> StreamingResponse:
    async def body() -> AsyncIterator[str]:
        yield text

    return StreamingResponse(body(), media_type="text/event-stream")


@contextmanager
def serving() -> Iterator[Gallery]:
    """The gallery on a free port."""
    gallery = Gallery()
    server = uvicorn.Server(uvicorn.Config(gallery.app(), host="127.0.0.1", port=0, log_level="warning"))
    started = threading.Event()
    startup = server.startup

    async def startup_and_tell(*args: Any, **kwargs: Any) -> None:
        await startup(*args, **kwargs)
        started.set()

    server.startup = startup_and_tell  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert started.wait(30)
        port = server.servers[0].sockets[0].getsockname()[1]
        gallery.address = f"http://127.0.0.1:{port}"
        yield gallery
    finally:
        server.should_exit = True
        thread.join(30)
