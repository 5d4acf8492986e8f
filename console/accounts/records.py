"""What pages and the API show of accounts."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, computed_field

from ..access.actor import Scope
from ..database.base import utc_now
from ..models import Role
from .browser_names import browser_name

__all__ = ["AccountState", "LoginRow", "NewToken", "TokenRow", "TokenState", "UserFilter", "UserRow", "WhoAmI"]

AccountState = Literal["active", "disabled"]
TokenState = Literal["active", "expired", "revoked"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class UserFilter(_Record):
    """Which accounts are listed: those that are all of this."""

    role: Role | None = None
    state: AccountState | None = None
    text: str | None = None
    """Part of the name."""


class UserRow(_Record):
    """An account."""

    id: int
    name: str
    role: Role
    created_at: datetime
    last_login_at: datetime | None
    disabled_at: datetime | None
    logins: int
    """Browsers in which it is logged in."""
    tokens: int
    """Its tokens that can be used."""

    @computed_field  # type: ignore[prop-decorator]  # mypy does not know it
    @property
    def state(self) -> AccountState:
        """Whether it may be used."""
        return "active" if self.disabled_at is None else "disabled"


class LoginRow(_Record):
    """A browser in which an account is logged in."""

    handle: str
    """Names it; worth nothing."""
    created_at: datetime
    seen_at: datetime
    """When it was last used, to within five minutes."""
    expires_at: datetime
    address: str
    browser: str
    """As it calls itself."""
    is_this_one: bool
    """Whether the list is being read in it."""

    @computed_field  # type: ignore[prop-decorator]  # mypy does not know it
    @property
    def browser_name(self) -> str:
        """``Firefox on Linux``."""
        return browser_name(self.browser)


class TokenRow(_Record):
    """A program's key, without the key."""

    id: int
    name: str
    shown_start: str
    """Its first characters."""
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    """None: never."""
    used_at: datetime | None
    """When it was last used, to within a minute."""
    revoked_at: datetime | None

    @computed_field  # type: ignore[prop-decorator]  # mypy does not know it
    @property
    def state(self) -> TokenState:
        """Whether it can be used."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= utc_now() else "active"


class NewToken(_Record):
    """A token that was just made, with its secret: it is told this once."""

    token: TokenRow
    secret: str


class WhoAmI(_Record):
    """Who asks."""

    name: str
    role: Role
    by: str
    """``browser`` or ``token NAME``."""
    scopes: tuple[Scope, ...]
    """What it may do: what its role and, for a token, its scopes allow."""
