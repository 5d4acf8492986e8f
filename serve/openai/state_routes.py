"""The routes that say what is served, and whether it can be asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from .errors import ApiError
from .served import ServedModel, model_named

__all__ = ["add_state_routes"]


def add_state_routes(app: FastAPI, models: Mapping[str, ServedModel]) -> None:
    """Add the routes that generate nothing.

    Args:
        app: its ``state.generators`` are the models' clients to Triton, by name.
        models: what it serves.
    """
    created = int(time.time())

    def entry(name: str) -> dict[str, Any]:
        """``chat`` and ``tools`` are additions: whether it can chat, and in which form its tool calls are read."""
        template = models[name].template
        form = template.form.name if template.form is not None and template.takes_tools else None
        head = {"id": name, "object": "model", "created": created, "owned_by": "roundhouse"}
        return head | {"chat": template.supported, "tools": form}

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz(request: Request) -> JSONResponse:
        generators = request.app.state.generators
        found = zip(models, await asyncio.gather(*(generators[name].problem() for name in models)), strict=True)
        problems = [problem if len(models) == 1 else f"{name}: {problem}" for name, problem in found if problem]
        body: dict[str, Any] = {"status": "not ready" if problems else "ready"}
        body["chat"] = all(model.template.supported for model in models.values())
        return JSONResponse(body | {"reason": "; ".join(problems)}, 503) if problems else JSONResponse(body)

    @app.get("/v1/pages")
    async def pages(request: Request, model: str | None = None) -> Response:
        """An addition: who holds each KV page of a model's engine."""
        if model is None:
            if len(models) > 1:
                message = f"{len(models)} models are served here; name one of them: ?model=NAME"
                raise ApiError(400, message, code="invalid_request", param="model")
            model = next(iter(models))
        model_named(model, models)
        return Response(await request.app.state.generators[model].pages(), media_type="application/json")

    @app.get("/v1/models")
    async def list_models() -> dict[str, Any]:
        return {"object": "list", "data": [entry(name) for name in models]}

    @app.get("/v1/models/{name:path}")
    async def one_model(name: str) -> dict[str, Any]:
        model_named(name, models)
        return entry(name)
