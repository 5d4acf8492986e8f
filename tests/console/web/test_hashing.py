"""Hashing a password is slow on purpose: nobody else waits for it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from browsing import ORIGIN, PASSWORD, BrowserMaker
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from served_app import ServedApp

from roundhouse.build.home import Home
from roundhouse.console.access import accounts
from roundhouse.console.database.database import Database
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app

OTHER = "another long password"
MORE_THAN_THREADS = 48

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


class Watched(PasswordHash):
    """Sees, at each hash, whether somebody holds the database's write lock."""

    def __init__(self, file: str) -> None:
        super().__init__((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))
        self._file = file
        self.held: list[str] = []
        self.hashed = 0

    def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
        self._look("hash")
        return super().hash(password, salt=salt)

    def verify(self, password: str | bytes, hash: str | bytes) -> bool:  # noqa: A002  # as it is called there
        self._look("verify")
        return super().verify(password, hash)

    def _look(self, what: str) -> None:
        self.hashed += 1
        other = sqlite3.connect(self._file, timeout=0, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        except sqlite3.OperationalError:
            self.held.append(what)
        finally:
            other.close()


def test_no_password_is_hashed_while_nobody_else_can_write(
    browser: BrowserMaker, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(str(database.url.database))
    monkeypatch.setattr(accounts, "_passwords", watched)
    token = browser().app.state.roundhouse.first_account.secret  # type: ignore[attr-defined]  # FastAPI's
    admin = browser()
    form = {"name": "ann", "password": PASSWORD, "again": PASSWORD, "token": token}
    assert admin.post("/setup", data=form, headers={"origin": ORIGIN}).status_code == 200
    admin.log_in("ann")
    assert admin.submit("/users", {"name": "bob", "password": PASSWORD, "role": "viewer"}).status_code == 200
    assert admin.submit("/users/bob/password", {"password": OTHER}).status_code == 200
    assert admin.submit("/account/password", {"old": PASSWORD, "password": OTHER, "again": OTHER}).status_code == 200
    headers = {"origin": ORIGIN, "x-form-token": admin.form_token()}
    made = admin.post("/api/v1/users", json={"name": "cid", "password": PASSWORD, "role": "viewer"}, headers=headers)
    assert made.status_code == 201
    assert admin.patch("/api/v1/users/cid", json={"password": OTHER}, headers=headers).status_code == 200
    assert watched.hashed >= 8
    assert watched.held == []


def test_a_stranger_without_the_link_has_nothing_hashed(
    browser: BrowserMaker, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(str(database.url.database))
    monkeypatch.setattr(accounts, "_passwords", watched)
    form = {"name": "eve", "password": PASSWORD, "again": PASSWORD, "token": "guessed"}
    assert browser().post("/setup", data=form, headers={"origin": ORIGIN}).status_code == 403
    assert watched.hashed == 0


@pytest.mark.parametrize("path", ["/api/v1/users", "/api/v1/users/the-admin"])
def test_half_a_character_is_no_password(browser: BrowserMaker, path: str) -> None:
    admin = browser("admin")
    headers = {"origin": ORIGIN, "x-form-token": admin.form_token(), "content-type": "application/json"}
    new = b'"name": "bob", "role": "viewer", ' if path.endswith("users") else b""
    body = b"{" + new + b'"password": "correct horse \\ud800 battery"}'
    answer = admin.request("POST" if new else "PATCH", path, content=body, headers=headers)
    assert answer.status_code == 422, answer.text


@pytest.fixture
def served(database: Database, tmp_path: Path) -> Iterator[ServedApp]:
    app = ServedApp(create_app(ConsoleSettings(home=Home(tmp_path / "home")), database))
    yield app
    app.stop()


def test_strangers_who_wait_to_be_let_in_keep_nobody_waiting(served: ServedApp, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, go_on = threading.Event(), threading.Event()

    def hashing(*_: object) -> bool:
        waiting.set()
        assert go_on.wait(60)
        return False

    monkeypatch.setattr("roundhouse.console.web.pages.login.password_fits", hashing)
    monkeypatch.setattr("roundhouse.console.access.login_throttle.LoginThrottle.take", lambda *_: 0.0)

    def try_in(number: int) -> int:
        return httpx.post(f"{served.url}/login", data={"name": f"eve-{number}", "password": "x"}, timeout=60).status_code

    with ThreadPoolExecutor(MORE_THAN_THREADS) as strangers:
        tries = [strangers.submit(try_in, number) for number in range(MORE_THAN_THREADS)]
        try:
            assert waiting.wait(60)
            for path in ("/healthz", "/livez", "/readyz", "/login"):
                assert httpx.get(f"{served.url}{path}", timeout=30).status_code == 200
            assert not any(each.done() for each in tries)
        finally:
            go_on.set()
        assert {each.result() for each in tries} == {401}
