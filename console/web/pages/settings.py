"""Settings: what this process runs with, and what admins change for all of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from ...errors import FieldError
from ...process import process_settings
from ...settings_table import change_settings, read_settings
from ..page import Page, PageMaker
from ..rendering import redirect
from ..state import state_of
from ..who import Admin, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/settings")

_Text = Annotated[str, Form(max_length=50)]


@router.get("", dependencies=[needs("read")])
def settings(request: Request, page: Page, session: Reading) -> Response:
    """Both kinds of settings."""
    typed = {key: "" if value is None else value for key, value in read_settings(session)}
    session.commit()
    return _show(request, page, typed)


@router.post("")
def change(
    request: Request,
    page: Page,
    actor: Admin,
    gpu_hour_price: _Text = "",
    currency: _Text = "",
    job_log_days: _Text = "",
) -> Response:
    """Change what can be changed, or show the form again."""
    typed: dict[str, object] = {"gpu_hour_price": gpu_hour_price, "currency": currency, "job_log_days": job_log_days}
    given = {key: str(text).strip() or None for key, text in typed.items()}
    try:
        with state_of(request).database.writing() as session:
            change_settings(session, actor, given | {"currency": currency.strip().upper() or "USD"})
    except FieldError as error:
        return _show(request, page, typed, 422, {error.field: error.message})
    return redirect("/settings", "The settings are changed.")


def _show(
    request: Request, page: PageMaker, typed: dict[str, object], status: int = 200, errors: dict[str, str] | None = None
) -> Response:
    state = state_of(request)
    process = process_settings(state.settings, state.database)
    return page("settings/settings.html", status, process=process, typed=typed, errors=errors or {})
