"""Everybody who can ask for something: nobody, each role, tokens of each scope, and tokens that are worth nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from fastapi import FastAPI
from starlette.types import Message

from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.access.actor import SCOPES, Scope
from roundhouse.console.access.logins import Logins
from roundhouse.console.access.secrets import hash_of
from roundhouse.console.access.tokens import add_token, revoke_token
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import LoginSession, Role, User

MAY: dict[Role, set[Scope]] = {
    "viewer": {"read"},
    "operator": {"read", "build", "deploy"},
    "admin": {"read", "build", "deploy", "admin"},
}
"""Written down here once more, so that a slip in the console is seen."""


@dataclass(frozen=True)
class Somebody:
    """Who asks, and what they may do."""

    name: str
    role: Role | None = None
    scopes: tuple[Scope, ...] | None = None
    """Of a token; None: logged in with a browser."""
    worthless: str = ""
    """``revoked``, ``expired``, ``disabled`` or ``unknown``."""

    def may(self, scope: Scope, *, in_person: bool) -> bool:
        if self.role is None or self.worthless:
            return False
        if self.scopes is not None and (in_person or scope not in self.scopes):
            return False
        return scope in MAY[self.role]

    def arrive(self, database: Database) -> Callable[[], dict[str, str]]:
        """Make the account; returns what makes the headers of one request. Each has a login of its own: it may end it."""
        if self.role is None:
            return dict
        with database.writing() as session:
            user = add_account(session, "somebody", hash_password("correct horse battery"), self.role)
            if self.worthless == "disabled":
                user.disabled_at = utc_now()
            if self.scopes is None:
                return partial(_logged_in, database, user)
            token, secret = add_token(session, user.id, "its token", self.scopes, utc_now() + timedelta(days=1))
            if self.worthless == "revoked":
                revoke_token(token)
            if self.worthless == "expired":
                token.expires_at = utc_now() - timedelta(seconds=1)
            if self.worthless == "unknown":
                secret += "x"
        return lambda: {"authorization": f"Bearer {secret}"}


def _logged_in(database: Database, user: User) -> dict[str, str]:
    with database.writing() as session:
        cookie = Logins().begin(session, session.merge(user, load=False), address="", browser="")
        session.flush()
        form = session.get_one(LoginSession, hash_of(cookie)).form_secret
    return {"cookie": f"roundhouse_login={cookie}", "x-form-token": form, "origin": "http://127.0.0.1"}


EVERYBODY = (
    Somebody("nobody"),
    *(Somebody(f"a browser of a {role}", role) for role in MAY),
    Somebody("a browser of a disabled admin", "admin", worthless="disabled"),
    *(Somebody(f"a token of an admin to {scope}", "admin", (scope,)) for scope in SCOPES),
    *(Somebody(f"a token of a {role} to everything", role, SCOPES) for role in MAY),
    *(Somebody(f"a token that is {why}", "admin", SCOPES, why) for why in ("revoked", "expired", "disabled", "unknown")),
)


async def visit(app: FastAPI, method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    """Ask for something with an empty body, and leave when the answer begins: streams would go on for minutes.

    Returns:
        Status and headers of the answer.
    """
    place, _, query = path.partition("?")
    headers = {"host": "127.0.0.1", **headers}
    started = asyncio.get_running_loop().create_future()
    gone = asyncio.Event()
    asked = False

    async def receive() -> Message:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start" and not started.done():
            told = {name.decode(): value.decode() for name, value in message["headers"]}
            started.set_result((message["status"], told))
            gone.set()

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": place,
        "raw_path": place.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "app": app,
    }
    task = asyncio.ensure_future(app(scope, receive, send))
    await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        await asyncio.wait({task}, timeout=5)
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return await started
