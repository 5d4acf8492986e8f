"""A deployment's OpenAI front, made up: a real server that says what a test wants, and sees who goes away."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from roundhouse.serve.triton.ports import bind_port

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}}


@dataclass
class MadeUpFront:
    """Answers each request with ``words``, or refuses it; ``endless`` goes on until the client leaves."""

    words: tuple[str, ...] = ("Hel", "lo ", "<b>")
    refuses: tuple[int, str] | None = None
    error_after: str | None = None
    endless: bool = False
    breaks: bool = False
    asked: list[tuple[str, dict[str, Any], str | None]] = field(default_factory=list)
    """Route, body and Authorization header of each request."""
    page_map: bytes | None = None
    """What it says of its pages; None: it knows no such route."""
    left: threading.Event = field(default_factory=threading.Event)
    """Set when a client has gone before its answer's end."""
    url: str = ""

    def __enter__(self) -> MadeUpFront:
        listening = bind_port("127.0.0.1", 0)
        listening.listen()  # who connects before the server runs waits for it
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        self._server = uvicorn.Server(uvicorn.Config(self._app(), log_level="error", ws="none", timeout_graceful_shutdown=1))
        self._listening = listening
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listening]}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._listening.close()

    def _app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/v1/pages")
        async def pages(request: Request, model: str) -> Response:
            self.asked.append(("pages", {"model": model}, request.headers.get("authorization")))
            if self.refuses is not None:
                status, message = self.refuses
                return JSONResponse({"error": {"message": message}}, status)
            return Response(self.page_map, 404 if self.page_map is None else 200, media_type="application/json")

        @app.post("/v1/{route:path}")
        async def answer(request: Request, route: str) -> Response:
            self.asked.append((route, await request.json(), request.headers.get("authorization")))
            if self.refuses is not None:
                status, message = self.refuses
                return JSONResponse({"error": {"message": message}}, status)
            return StreamingResponse(self._events(route), media_type="text/event-stream")

        return app

    async def _events(self, route: str) -> AsyncIterator[str]:
        try:
            for word in self.words:
                yield _chunk(route, word, None)
            while self.endless:
                yield _chunk(route, "again ", None)
                await asyncio.sleep(0.01)
            if self.breaks:
                return
            if self.error_after is not None:
                yield f"data: {json.dumps({'error': {'message': self.error_after}})}\n\n"
                return
            yield _chunk(route, "", "length")
            yield f"data: {json.dumps({'choices': [], 'usage': USAGE})}\n\n"
            yield "data: [DONE]\n\n"
        except asyncio.CancelledError:
            self.left.set()
            raise


def _chunk(route: str, text: str, reason: str | None) -> str:
    said = {"text": text} if route == "completions" else {"delta": {"content": text} if text else {}}
    return f"data: {json.dumps({'choices': [{'index': 0, 'finish_reason': reason, **said}], 'usage': None})}\n\n"
