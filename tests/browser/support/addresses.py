"""The addresses of a console's pages, from its routes: a page that is added is among them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product

import httpx
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from roundhouse.console.web.routes import add_routes

__all__ = ["addresses_of", "page_at", "routes_for_browsers"]

MANY = 25
"""More than that of one route is a mistake in what can be named."""


def routes_for_browsers() -> list[str]:
    """Every path that a browser may get, as the console declares it."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_routes(app)
    paths = {str(route.path) for route in iter_route_contexts(app.routes) if "GET" in (route.methods or ())}
    return sorted(path for path in paths if not path.startswith("/api/"))


def addresses_of(route: str, samples: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The addresses of a route, with everything that its parameters can name."""
    names = re.findall(r"{(\w+)(?::\w+)?}", route)
    values = [samples[_key(name, route, samples)] for name in names]
    found = list(_filled(route, names, values))
    assert len(found) <= MANY
    return found


def page_at(client: httpx.Client, address: str) -> str:
    """The page that is there; nothing where there is a part of one, a file, or a stream."""
    with client.stream("GET", address) as answer:
        if not answer.headers.get("content-type", "").startswith("text/html"):
            return ""
        answer.read()
        return answer.text if answer.text.lstrip().lower().startswith("<!doctype html>") else ""


def _key(name: str, route: str, samples: Mapping[str, tuple[str, ...]]) -> str:
    """A parameter's own name, unless there is a part of the route under which it means something else."""
    return next((key for key in samples if f"{{{name}}}" in key and key in route), name)


def _filled(route: str, names: list[str], values: list[tuple[str, ...]]) -> Iterator[str]:
    for chosen in product(*values):
        address = route
        for name, value in zip(names, chosen, strict=True):
            address = re.sub(rf"{{{name}(:\w+)?}}", value, address)
        yield address
