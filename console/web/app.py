"""The web application."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from fastapi.staticfiles import StaticFiles

from roundhouse import __version__
from roundhouse.serve.openai.body_limit import BodyLimit

from ..access.first_account import FirstAccountLink
from ..access.logins import Logins
from ..benchmarks.sent import MOST_BYTES
from ..database.database import Database
from ..settings import ConsoleSettings
from . import metrics
from .api.description import operation_id
from .cookies import LOGIN_COOKIES
from .guards import CrossSiteGuard, HostGuard, SecureHeaders
from .left_out import EmptyIsLeftOut
from .problems import add_error_handlers
from .rendering import STATIC, Templates, static_base
from .routes import add_routes
from .state import WebState

__all__ = ["create_app"]

_LARGEST_BODY = 2**20
_OF_FILES = {
    "/api/v1/benchmarks/imports": 2 * MOST_BYTES,  # in JSON a character may take several bytes
    "/benchmarks/import": MOST_BYTES + _LARGEST_BODY,
}
"""Where people send files of results, and how large these requests may be."""


def create_app(settings: ConsoleSettings, database: Database) -> FastAPI:
    """Make the application.

    Args:
        settings: what it runs with.
        database: opened, with this version's schema.

    Returns:
        The application; its ``state.roundhouse`` is the :class:`WebState`.
    """
    app = FastAPI(
        title="Roundhouse",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=operation_id,
    )
    app.state.roundhouse = WebState(settings, database, Templates(), Logins(), FirstAccountLink())
    add_routes(app)
    app.mount(static_base(), StaticFiles(directory=STATIC), name="static")
    add_error_handlers(app)
    app.add_middleware(EmptyIsLeftOut)
    app.add_middleware(
        BodyLimit,
        limit=_LARGEST_BODY,
        refuse=lambda problem: PlainTextResponse(f"{problem}\n", 413),
        limits=_OF_FILES,
    )
    app.add_middleware(CrossSiteGuard, cookies=LOGIN_COOKIES, public_url=settings.public_url)
    app.add_middleware(HostGuard, names=settings.host_names)
    app.add_middleware(SecureHeaders, by_https=settings.secure)
    app.add_middleware(metrics.CountRequests, metrics=app.state.roundhouse.requests)  # the last one added is the first one met
    return app
