"""Every route of an application, and addresses of things that are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import iter_route_contexts

__all__ = ["declared", "named", "routes_of"]


def declared(dependant: Dependant) -> Iterator[Any]:
    """What guards a route, found among all that it depends on."""
    for each in dependant.dependencies:
        if hasattr(each.call, "scopes"):
            yield each.call
        yield from declared(each)


def routes_of(app: FastAPI) -> Iterator[tuple[str, str, list[Any]]]:
    for route in iter_route_contexts(app.routes):
        if str(route.path).startswith("/static/"):
            continue
        guards = list(declared(route.dependant)) if hasattr(route, "dependant") else []
        for method in sorted(route.methods or ()):
            yield method, str(route.path), guards


def named(path: str, known: dict[str, str | int]) -> str:
    return re.sub(r"{(\w+)(?::\w+)?}", lambda found: str(known[found[1]]), path)
