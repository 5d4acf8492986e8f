"""Errors, as pages for people and as problem details (RFC 9457) for programs."""

from __future__ import annotations

import logging
from http import HTTPStatus
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionError
from starlette.exceptions import HTTPException

from roundhouse.errors import PlanRefusedError, RoundhouseError

from ..access.actor import Actor
from ..errors import FieldError
from .guards import secure
from .navigation import Attention, attention
from .problem_details import API, MEDIA_TYPE, FieldProblem, Problem, kind_of
from .state import state_of
from .who import find_actor

__all__ = ["add_error_handlers", "problem_response"]

_log = logging.getLogger(__name__)
_MET = ("40P01", "40001")
"""SQLSTATE: PostgreSQL undid a transaction that waited for another in a circle, or could not be put in a row with it."""


def add_error_handlers(app: FastAPI) -> None:
    """Have every error answered in words."""

    @app.exception_handler(RoundhouseError)
    def known(request: Request, error: RoundhouseError) -> Response:
        status, kind = kind_of(error)
        if status == HTTPStatus.UNAUTHORIZED and not _is_program(request):
            return _to_login(request)
        fields = (FieldProblem(field=error.field, problem=error.message),) if isinstance(error, FieldError) else ()
        reasons = error.reasons if isinstance(error, PlanRefusedError) else ()
        return problem_response(request, status, error.message, error.hint, kind=kind, fields=fields, reasons=reasons)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        if not _is_program(request) and all(each["loc"][0] == "path" for each in error.errors()):
            return problem_response(request, 404, _no_page(request), None)  # an id that none can have
        fields = tuple(FieldProblem(field=".".join(map(str, each["loc"][1:])), problem=each["msg"]) for each in error.errors())
        text = "; ".join(f"{each.field}: {each.problem}" if each.field else each.problem for each in fields)
        return problem_response(request, 422, text, None, fields=fields)

    @app.exception_handler(HTTPException)
    def http(request: Request, error: HTTPException) -> Response:
        text = _no_page(request) if error.status_code == HTTPStatus.NOT_FOUND else str(error.detail)
        response = problem_response(request, error.status_code, text, None)
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(DataError)
    def unstorable(request: Request, _: DataError) -> Response:
        return problem_response(request, 422, "a value in this request is none that can be kept", None)

    @app.exception_handler(IntegrityError)
    def overtaken(request: Request, error: DBAPIError) -> Response:
        _log.error("two requests met: %s", error.orig)
        return problem_response(
            request, 409, "somebody else has changed this meanwhile; nothing was done", "Look, and try again."
        )

    @app.exception_handler(OperationalError)
    @app.exception_handler(InterfaceError)
    @app.exception_handler(NoConnectionError)
    def database(request: Request, error: SQLAlchemyError) -> Response:
        if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _MET:
            return overtaken(request, error)
        reason = error.orig if isinstance(error, DBAPIError) else error
        _log.error("the database does not answer: %s", reason)
        return problem_response(request, 503, "the database does not answer", "Try again in a moment; its log says more.")

    @app.exception_handler(Exception)
    def fault(request: Request, _: Exception) -> Response:  # the server logs it
        response = problem_response(request, 500, "the console failed", "Its log says more. Nothing was half done.")
        # This answer is made outside of all middleware.
        secure(response.headers, request.scope, 500, state_of(request).settings.secure)
        return response


def problem_response(
    request: Request,
    status: int,
    message: str,
    hint: str | None,
    *,
    kind: str | None = None,
    fields: tuple[FieldProblem, ...] = (),
    reasons: tuple[str, ...] = (),
) -> Response:
    """An error, in the form that whoever asks can read; to who is logged in, within the console's frame."""
    title = HTTPStatus(status).phrase
    if _is_program(request):
        problem = Problem.of(kind, title=title, status=status, detail=message, hint=hint, errors=fields, reasons=reasons)
        challenge = {"www-authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else None
        return Response(problem.as_bytes(), status, challenge, MEDIA_TYPE)
    actor, counted = (None, Attention()) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else _who_sees_it(request)
    templates = state_of(request).templates
    return templates.page(request, "error.html", actor, counted, status, code=status, phrase=title, message=message, hint=hint)


def _who_sees_it(request: Request) -> tuple[Actor | None, Attention]:
    """Who is logged in, found out now where no route has asked; nobody where the database does not tell."""
    try:
        with state_of(request).database.reading() as session:
            known = hasattr(request.state, "actor")
            actor: Actor | None = request.state.actor if known else find_actor(request, session)
            return actor, attention(session) if actor else Attention()
    except SQLAlchemyError:
        return None, Attention()


def _no_page(request: Request) -> str:
    return f"there is no page {request.url.path}"


def _is_program(request: Request) -> bool:
    """Whether problem details can be read by whoever asks: programs, and scripts of our pages, which say so."""
    return request.url.path.startswith(API) or MEDIA_TYPE in request.headers.get("accept", "")


def _to_login(request: Request) -> Response:
    """To the login page, and back here after it; what a form asked for is not done later by itself."""
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    back = f"?next={quote(here, safe='')}" if request.method == "GET" and here != "/" else ""
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={"hx-redirect": f"/login{back}"})
    return RedirectResponse(f"/login{back}", 303)
