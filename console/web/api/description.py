"""What the API says of itself, as OpenAPI: every operation with its errors, who may ask, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from fastapi.security import APIKeyCookie, HTTPBearer

from roundhouse.errors import UsageError

from ...access.actor import Scope
from ..problem_details import API, MEDIA_TYPE, Problem
from ..who import FindActor

__all__ = ["PROBLEMS", "bearer", "cookie", "describe", "note_scopes", "only_known_parameters", "operation_id"]

_TEXT = (
    "Everything that the console's pages can do. Programs send `Authorization: Bearer TOKEN`; scripts of its own pages send "
    "the cookie of a login and, where something is changed, the form token in `X-Form-Token`. Errors are problem details "
    "(RFC 9457). `docs/api.md` in the repository explains the rest."
)


def _problem(what: str) -> dict[str, Any]:
    return {"description": what, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: _problem("The body is no text."),
    401: _problem("Nobody is logged in, or the token is not known any more."),
    403: _problem("Whoever asks may not do this: the role or the token's scopes do not allow it."),
    404: _problem("There is no such thing."),
    409: _problem("It is in a state in which this cannot be done."),
    422: _problem("The request is wrong; `errors` names fields. Or the plan refuses the recipe: `reasons` says why."),
    503: _problem("The database does not answer, or this machine lacks something."),
}
"""What any operation may be answered with when it fails."""

bearer = HTTPBearer(scheme_name="token", description="A token of an account, with scopes.", auto_error=False)
cookie = APIKeyCookie(
    name="roundhouse_login", scheme_name="login", description="What a browser holds after the login page.", auto_error=False
)


def operation_id(route: APIRoute) -> str:
    """What an operation is called: its method and the words of its path."""
    method = min(route.methods or ("GET",)).lower()
    words = route.path_format.removeprefix(f"{API}v1").replace("{", "by_").replace("}", "").replace("-", "_").split("/")
    return "_".join([method, *(word.replace(".", "_") for word in words if word)])


def note_scopes(router: APIRouter) -> None:
    """Have the description say of each operation which scope it asks for, as ``x-scope``."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            route.openapi_extra = {"x-scope": next(_scopes(route.dependant), None)}


def _scopes(dependant: Dependant) -> Iterator[str]:
    for each in dependant.dependencies:
        scopes: tuple[Scope, ...] | None = getattr(each.call, "scopes", None)
        if scopes is not None:
            yield " or ".join(scopes)
        yield from _scopes(each)


def only_known_parameters(request: Request, actor: FindActor) -> None:
    """Refuse what a route does not read: a filter that is written wrongly would otherwise show everything.

    Raises:
        UsageError: naming it, and what there is.
    """
    route = request.scope.get("route")
    if actor is None or not isinstance(route, APIRoute):
        return
    known = sorted(set(_query_names(route.dependant)))
    for name in request.query_params:
        if name not in known:
            there = f"There is {', '.join(known)}." if known else "It takes none."
            raise UsageError(f"{route.path_format} takes no parameter {name!r}", hint=there)


def _query_names(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for each in dependant.dependencies:
        yield from _query_names(each)


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the API; made once."""
    if app.openapi_schema is None:
        found = get_openapi(title=f"{app.title} API", version=app.version, description=_TEXT, routes=app.routes)
        problem = Problem.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
        found["components"]["schemas"] |= {**problem.pop("$defs"), "Problem": problem}
        for operations in found["paths"].values():
            for operation in operations.values():
                operation["summary"] = operation["description"].partition(". ")[0].rstrip(".")
        app.openapi_schema = found
    return app.openapi_schema
