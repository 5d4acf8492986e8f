"""Who asks, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import ForbiddenError
from ..models import Role

__all__ = ["SCOPES", "Actor", "Scope"]

Scope = Literal["read", "build", "deploy", "admin"]
"""What a token may be used for: to read; to build, verify, remove and drill; to deploy and to chat; to administer."""
SCOPES: tuple[Scope, ...] = get_args(Scope)
_RANK: dict[Role, int] = {"viewer": 0, "operator": 1, "admin": 2}
_NEEDED: dict[Scope, Role] = {"read": "viewer", "build": "operator", "deploy": "operator", "admin": "admin"}


@dataclass(frozen=True)
class Actor:
    """Somebody, as one request shows them."""

    user_id: int
    name: str
    role: Role
    by: str
    """``browser``, ``token NAME`` or ``command line``."""
    address: str
    scopes: frozenset[Scope] = frozenset(SCOPES)
    form_token: str | None = None
    """What this login's forms carry; None for tokens, which send no forms."""
    login: str | None = None
    """The hash that names this login."""

    def may(self, scope: Scope) -> bool:
        """Whether role and token allow this."""
        return scope in self.scopes and _RANK[self.role] >= _RANK[_NEEDED[scope]]

    def require(self, scope: Scope) -> None:
        """Refuse what is not allowed.

        Raises:
            ForbiddenError: saying which role or scope it needs.
        """
        if self.may(scope):
            return
        if scope not in self.scopes:
            raise ForbiddenError(f"this token has no scope {scope}", hint="Make one with it on the page of your account.")
        raise ForbiddenError(f"this needs the role {_NEEDED[scope]}; {self.name} is {self.role}", hint="Ask an admin.")
