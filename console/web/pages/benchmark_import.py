"""Files of results that were measured elsewhere: sent with a form, and then runs of the history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import Response

from roundhouse.errors import UsageError

from ...benchmarks.importing import add_imported
from ...benchmarks.sent import MOST_BYTES, read_sent
from ...benchmarks.sent_files import SentFile
from ...errors import ConflictError
from ..page import Page
from ..rendering import redirect
from ..state import state_of
from ..who import Builder, needs

__all__ = ["router"]

router = APIRouter(prefix="/benchmarks/import")
_MOST_NAMES = 3
"""Of files, in a sentence."""
_Words = Annotated[str, Form(max_length=200)]


@router.get("", dependencies=[needs("build")])
def form(page: Page) -> Response:
    """Which files, and what they do not say."""
    return page("benchmarks/import.html", **_shown())


@router.post("")
def take(
    request: Request,
    page: Page,
    actor: Builder,
    file: Annotated[list[UploadFile] | None, File()] = None,
    server: _Words = "",
    model: _Words = "",
) -> Response:
    """Take the runs of all of them, or say what is wrong and take none."""
    sent = [SentFile(name=each.filename, content=each.file.read()) for each in file or () if each.filename]
    typed = {"server": server.strip(), "model": model.strip()}
    if not sent:
        return page("benchmarks/import.html", 422, **_shown(typed, "choose at least one file"))
    try:
        runs = read_sent(sent, server=typed["server"] or None, model=typed["model"] or None)
        with state_of(request).database.writing() as session:
            ids = add_imported(session, actor, runs)
    except (UsageError, ConflictError) as error:
        problem = error.message if error.hint is None else f"{error.message}. {error.hint}"
        status = 409 if isinstance(error, ConflictError) else 422
        return page("benchmarks/import.html", status, **_shown(typed, problem))
    left_out = _left_out([name for run in runs for name in run.too_large])
    if len(ids) == 1:
        return redirect(f"/benchmarks/{ids[0]}", f"It was imported.{left_out}")
    return redirect("/benchmarks?imported=true", f"{len(ids)} runs were imported.{left_out}")


def _left_out(names: Sequence[str]) -> str:
    """Which files were read, and are too large to be kept."""
    if not names:
        return ""
    shown = list(dict.fromkeys(names))
    more = f" and {len(shown) - _MOST_NAMES} more" if len(shown) > _MOST_NAMES else ""
    were = "was" if len(shown) == 1 else "were"
    return f" Too large to be kept with it, {', '.join(shown[:_MOST_NAMES])}{more} {were} read and left out."


def _shown(typed: dict[str, str] | None = None, problem: str = "") -> dict[str, Any]:
    """What the template needs: what was typed, and what is wrong. A browser does not choose files again by itself."""
    return {
        "typed": typed or {"server": "", "model": ""},
        "errors": {"file": problem} if problem else {},
        "most_bytes": MOST_BYTES,
    }
