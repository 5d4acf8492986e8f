"""The web application: OpenAI's routes in front of one model on Triton."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from .body_limit import BodyLimit
from .chat import ChatTemplate
from .errors import ApiError, routing_error, validation_error
from .responses import Answer, event_stream
from .schemas import ChatRequest, CompletionRequest
from .triton_client import Generator, Piece

__all__ = ["create_app"]

_LARGEST_BODY = 16 * 2**20


def create_app(model: str, template: ChatTemplate, connect: Callable[[], Generator]) -> FastAPI:
    """Make the application.

    Args:
        model: the one model it serves; any other name is a 404.
        template: how messages become a prompt.
        connect: makes the client to Triton, inside the server's event loop.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.triton = connect()
        yield
        await app.state.triton.close()

    app = FastAPI(title="Roundhouse", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(BodyLimit, limit=_LARGEST_BODY)
    created = int(time.time())

    @app.exception_handler(ApiError)
    async def api_error(_: Request, error: ApiError) -> JSONResponse:
        return JSONResponse(error.body, status_code=error.status)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        problem = validation_error(error.errors(), content_type=request.headers.get("content-type"))
        return JSONResponse(problem.body, status_code=problem.status)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        problem = routing_error(error.status_code, error.detail, f"{request.method} {request.url.path}")
        return JSONResponse(problem.body, status_code=problem.status, headers=error.headers)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        problem = await app.state.triton.problem()
        if problem is not None:
            return JSONResponse({"status": "not ready", "chat": template.supported, "reason": problem}, 503)
        return JSONResponse({"status": "ready", "chat": template.supported})

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [_model_entry(model, created)]}

    @app.get("/v1/models/{name}")
    async def one_model(name: str) -> dict[str, Any]:
        _require_model(name, model)
        return _model_entry(model, created)

    @app.post("/v1/completions")
    async def completions(body: CompletionRequest, request: Request) -> Response:
        _require_model(body.model, model)
        pieces = app.state.triton.generate(body.one_prompt, body.sampling, streaming=body.stream)
        return await _respond(Answer("completion", model), pieces, body, request)

    @app.post("/v1/chat/completions")
    async def chat_completions(body: ChatRequest, request: Request) -> Response:
        _require_model(body.model, model)
        prompt = await run_in_threadpool(template.prompt_ids, body.messages)  # takes seconds when the text is long
        pieces = app.state.triton.generate(prompt, body.sampling, streaming=body.stream)
        return await _respond(Answer("chat", model), pieces, body, request)

    return app


async def _respond(
    answer: Answer, pieces: AsyncGenerator[Piece, None], body: CompletionRequest | ChatRequest, request: Request
) -> Response:
    """Wait for the first piece, so that a request that fails at once gets a proper status, then answer."""
    first = await _unless_disconnected(anext(pieces), request)
    if not body.stream:
        async for _ in pieces:  # there is one piece; this lets the stream end by itself
            pass
        return JSONResponse(answer.whole(first.text, first))
    events = event_stream(answer, first, pieces, include_usage=body.include_usage)
    return StreamingResponse(_closing(events, pieces), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


async def _unless_disconnected(piece: Awaitable[Piece], request: Request) -> Piece:
    """Await a piece; when the client goes away first, cancel the request behind it.

    Raises:
        ApiError: the client has gone; nobody will read it.
    """
    waiting = asyncio.ensure_future(piece)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            return waiting.result()
        raise ApiError(499, "the client went away", code="cancelled")
    finally:
        leaving.cancel()
        waiting.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _closing(events: AsyncIterator[str], pieces: AsyncGenerator[Piece, None]) -> AsyncIterator[str]:
    """Pass events on and, however the response ends, close the request behind them."""
    try:
        async for event in events:
            yield event
    finally:
        await pieces.aclose()


def _require_model(name: str, served: str) -> None:
    if name != served:
        raise ApiError(404, f"the model {name!r} is not served here; {served!r} is", code="model_not_found", param="model")


def _model_entry(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "roundhouse"}
