"""One's own account: password, logins, tokens."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from ...access.actor import SCOPES, Actor
from ...accounts.own import change_own_password, checked_change, end_other_logins, end_own_login, make_token, revoke_own_token
from ...accounts.queries import find_token, logins_of, tokens_of, who_am_i
from ...errors import FieldError
from ...models import User
from ..access_lists import RowId
from ..cookies import keep_login
from ..page import Page, PageMaker
from ..rendering import redirect
from ..state import state_of
from ..who import OwnAccount, Reading, address_of

__all__ = ["router"]

router = APIRouter(prefix="/account")
_NOTHING: dict[str, str] = {}
_TOO_MANY = 429
_DAYS: tuple[tuple[str, str], ...] = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "never"))

_Password = Annotated[str, Form(max_length=1024)]
Days = Literal["7", "30", "90", "365", ""]


@router.get("")
def account(page: Page, session: Reading, actor: OwnAccount) -> Response:
    """Everything about one's own account."""
    return _show(page, session, actor)


@router.post("/password")
def change_password(
    request: Request,
    page: Page,
    session: Reading,
    actor: OwnAccount,
    old: _Password,
    password: _Password,
    again: _Password,
) -> Response:
    """Change the password, and log out everywhere else; this login is a new one after it."""
    state, address = state_of(request), address_of(request)
    if wait := state.login_throttle.take(actor.name, address):
        return _show(page, session, actor, _TOO_MANY, {"old": f"too many tries; wait {wait:.0f} seconds"})
    user = session.get_one(User, actor.user_id)
    session.commit()  # what waits to hash holds no connection
    try:
        change = checked_change(user, old, password, again)
        with state.database.writing() as writing:
            user = change_own_password(writing, actor, change)
            browser = request.headers.get("user-agent", "")
            token = state.logins.begin(writing, user, address=address, browser=browser)
    except FieldError as error:
        if error.field != "old":
            state.login_throttle.succeeded(actor.name, address)
        return _show(page, session, actor, 422, {error.field: error.message})
    state.login_throttle.succeeded(actor.name, address)
    response = redirect("/account", "Your password is changed, and you are logged out everywhere else.")
    keep_login(request, response, token)
    return response


@router.post("/logins/end")
def log_out_elsewhere(request: Request, actor: OwnAccount) -> Response:
    """Log out everywhere but here."""
    with state_of(request).database.writing() as session:
        ended = end_other_logins(session, actor)
    return redirect("/account", f"You are logged out everywhere else ({ended} logins).")


@router.post("/logins/{handle}/end")
def log_out_there(request: Request, actor: OwnAccount, handle: str) -> Response:
    """Log out of another browser."""
    with state_of(request).database.writing() as session:
        end_own_login(session, actor, handle)
    return redirect("/account", "You are logged out there.")


@router.post("/tokens")
def new_token(
    request: Request,
    page: Page,
    session: Reading,
    actor: OwnAccount,
    name: Annotated[str, Form(max_length=200)] = "",
    scopes: Annotated[list[str], Form(max_length=len(SCOPES))] = [],  # noqa: B006  # FastAPI copies it
    days: Annotated[Days, Form()] = "90",
) -> Response:
    """Make a token. The page that answers shows it, this once."""
    try:
        with state_of(request).database.writing() as writing:
            made = make_token(writing, actor, name, scopes, int(days) if days else None)
    except FieldError as error:
        typed: dict[str, object] = {"name": name, "scopes": scopes, "days": days}
        return _show(page, session, actor, 422, {f"token-{error.field}": error.message}, typed)
    console = state_of(request).settings.public_url or str(request.base_url).rstrip("/")
    return page("account/token.html", 201, made=made, console=console)


@router.get("/tokens/{token_id}/revoke")
def ask_to_revoke(page: Page, session: Reading, actor: OwnAccount, token_id: RowId) -> Response:
    """Ask once whether to end a token of one's own."""
    found = find_token(session, actor.user_id, token_id)
    return page("account/revoke.html", token=found, owner=actor.name, back="/account")


@router.post("/tokens/{token_id}/revoke")
def revoke(request: Request, actor: OwnAccount, token_id: RowId) -> Response:
    """End a token of one's own."""
    with state_of(request).database.writing() as session:
        revoke_own_token(session, actor, token_id)
    return redirect("/account", "The token is revoked.")


def _show(
    page: PageMaker,
    session: Reading,
    actor: Actor,
    status: int = 200,
    errors: dict[str, str] = _NOTHING,
    typed: dict[str, object] | None = None,
) -> Response:
    return page(
        "account/account.html",
        status,
        me=who_am_i(actor),
        logins=logins_of(session, actor.user_id, actor.login),
        tokens=tokens_of(session, actor.user_id),
        errors=errors,
        typed=typed or {"name": "", "scopes": ["read"], "days": "90"},
        day_options=_DAYS,
    )
