"""The web application: OpenAI's routes in front of models on Triton."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from .api_keys import ApiKeys, RequireKey
from .body_limit import BodyLimit
from .closing import EndAtClosing
from .errors import ApiError, routing_error, validation_error
from .request_ids import REQUEST_ID, RequestIds
from .routes import add_generation_routes
from .served import ServedModel
from .state_routes import add_state_routes

__all__ = ["create_app"]

_LARGEST_BODY = 16 * 2**20


def create_app(models: Mapping[str, ServedModel], *, api_keys: ApiKeys | None = None) -> FastAPI:
    """Make the application.

    Args:
        models: what it serves, by name; any other name is a 404.
        api_keys: who may ask; None lets everybody.

    Returns:
        The application; when its ``state.closing`` is set, inside the event loop, all live requests end with a 503.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as closing:
            app.state.generators = {}
            for name, model in models.items():
                generator = model.connect()
                closing.push_async_callback(generator.close)
                app.state.generators[name] = generator
            yield

    app = FastAPI(title="Roundhouse", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(BodyLimit, limit=_LARGEST_BODY)
    if api_keys is not None:
        app.add_middleware(RequireKey, keys=api_keys)
    app.state.closing = asyncio.Event()
    app.add_middleware(EndAtClosing, closing=app.state.closing)
    app.add_middleware(RequestIds)  # the last one added is the first one met
    add_state_routes(app, models)
    add_generation_routes(app, models)
    _add_error_handlers(app)
    return app


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(ApiError)
    async def api_error(_: Request, error: ApiError) -> JSONResponse:
        return error.response

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return validation_error(error.errors(), content_type=request.headers.get("content-type")).response

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        response = routing_error(error.status_code, error.detail, f"{request.method} {request.url.path}").response
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def fault(request: Request, _: Exception) -> JSONResponse:  # the server logs it
        response = ApiError(500, "the front failed; its log says more", code="internal").response
        response.headers[REQUEST_ID] = request.state.request_id  # this answer is made outside of the middleware
        return response
