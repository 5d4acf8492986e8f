"""Templates, and what every page gets."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from roundhouse import __version__

from ..access.actor import Actor
from ..database.base import utc_now
from .formats import FILTERS
from .navigation import Attention, navigation

__all__ = ["STATIC", "Templates", "is_ours", "redirect", "set_flash", "static_base", "static_url"]

_ROOT = Path(__file__).parent.parent
STATIC = _ROOT / "static"
_FLASH, _THEME = "roundhouse_flash", "roundhouse_theme"
_FLASH_S = 60
_THEMES = ("light", "dark")

FlashKind = Literal["done", "problem"]


class Templates:
    """Renders pages. Undefined names are errors, and everything is escaped.

    Args:
        more: folders with templates beside the console's own.
    """

    def __init__(self, *more: Path) -> None:
        self._environment = _environment(more)

    def page(
        self, request: Request, template: str, actor: Actor | None, attention: Attention, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """A whole page.

        Args:
            request: what was asked.
            template: under ``templates/``.
            actor: who sees it.
            attention: what the navigation counts.
            status: of the answer.
            values: what the template needs beside what every page gets.
        """
        theme = request.cookies.get(_THEME)
        flash = _read_flash(request.cookies.get(_FLASH))
        text = self._environment.get_template(template).render(
            actor=actor,
            form_token=actor.form_token if actor and actor.form_token else "",
            nav=navigation(request.url.path, actor, attention),
            theme=theme if theme in _THEMES else "system",
            flash=flash,
            path=request.url.path,
            **values,
        )
        response = HTMLResponse(text, status)
        if flash is not None:
            response.delete_cookie(_FLASH, httponly=True, samesite="lax")
        return response

    def fragment(self, template: str, **values: Any) -> str:
        """A part of a page, to put in its place."""
        return self._environment.get_template(template).render(**values)


@lru_cache
def _environment(more: tuple[Path, ...]) -> Environment:
    """One for all applications of a process: it keeps what it has compiled."""
    environment = Environment(
        loader=FileSystemLoader([_ROOT / "templates", *more]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    environment.globals |= {"static_url": static_url, "version": __version__, "now": utc_now}
    return environment


def is_ours(path: str) -> bool:
    """Whether a browser that is sent there stays here."""
    return path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()


def redirect(path: str, flash: str | None = None, kind: FlashKind = "done") -> RedirectResponse:
    """After a form: on to a page of ours, with a sentence that is shown there once."""
    if not is_ours(path):
        raise ValueError(f"{path!r} is no path of ours")
    response = RedirectResponse(path, 303)
    if flash is not None:
        set_flash(response, flash, kind)
    return response


def set_flash(response: Response, text: str, kind: FlashKind) -> None:
    """Have a sentence shown on the next page."""
    value = base64.urlsafe_b64encode(json.dumps([kind, text[:500]], ensure_ascii=False).encode()).decode()
    response.set_cookie(_FLASH, value, max_age=_FLASH_S, httponly=True, samesite="lax")


def _read_flash(cookie: str | None) -> tuple[str, str] | None:
    if not cookie:
        return None
    try:
        kind, text = json.loads(base64.urlsafe_b64decode(cookie))
    except (ValueError, TypeError, RecursionError):  # whoever else is on this host may have set it
        return None
    return (kind, text) if kind in ("done", "problem") and isinstance(text, str) else None


@lru_cache
def static_base() -> str:
    """Under which address the static files lie.

    It changes when any of them does, so that browsers may keep all of them for ever, also those that scripts and styles name.
    """
    digest = hashlib.sha256()
    for path in sorted(STATIC.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(STATIC).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return f"/static/{digest.hexdigest()[:12]}"


@cache
def static_url(path: str) -> str:
    """The address of a static file.

    Raises:
        FileNotFoundError: there is none of that name.
    """
    if not (STATIC / path).is_file():
        raise FileNotFoundError(f"there is no static file {path}")
    return f"{static_base()}/{path}"
