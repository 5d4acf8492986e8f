"""Who asks. Tokens read this; making and revoking is done by who has logged in."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from ...access.actor import SCOPES, Scope
from ...accounts.own import MOST_DAYS, end_own_login, make_token, revoke_own_token
from ...accounts.queries import logins_of, tokens_of, who_am_i
from ...accounts.records import LoginRow, NewToken, TokenRow, WhoAmI
from ..access_lists import RowId
from ..state import state_of
from ..who import OwnAccount, Reading, Viewer

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/account", tags=["account"])


class TokenWanted(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=200)]
    scopes: Annotated[list[Scope], Field(max_length=len(SCOPES))]
    days: Annotated[int, Field(ge=1, le=MOST_DAYS)] | None = 90
    """Until it expires; null: never."""


@router.get("")
def account(actor: Viewer) -> WhoAmI:
    """Whom this token or login speaks for, and what it may do."""
    return who_am_i(actor)


@router.get("/tokens")
def tokens(session: Reading, actor: Viewer) -> tuple[TokenRow, ...]:
    """One's own tokens, without what they are."""
    return tokens_of(session, actor.user_id)


@router.post("/tokens", status_code=201)
def new_token(request: Request, actor: OwnAccount, wanted: TokenWanted) -> NewToken:
    """Make a token; the answer has its secret, this once."""
    with state_of(request).database.writing() as session:
        return make_token(session, actor, wanted.name, wanted.scopes, wanted.days)


@router.delete("/tokens/{token_id}", status_code=204)
def revoke(request: Request, actor: OwnAccount, token_id: RowId) -> None:
    """End a token of one's own; a second time changes nothing."""
    with state_of(request).database.writing() as session:
        revoke_own_token(session, actor, token_id)


@router.get("/logins")
def logins(session: Reading, actor: Viewer) -> tuple[LoginRow, ...]:
    """Where one is logged in."""
    return logins_of(session, actor.user_id, actor.login)


@router.delete("/logins/{handle}", status_code=204)
def log_out_there(request: Request, actor: OwnAccount, handle: str) -> None:
    """Log out of another browser."""
    with state_of(request).database.writing() as session:
        end_own_login(session, actor, handle)
