"""Accounts, as admins see and change them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from browsing import ORIGIN, PASSWORD, Browser, BrowserMaker
from counting import count_queries
from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.access.actor import Actor
from roundhouse.console.access.tokens import add_token
from roundhouse.console.accounts.actions import change_role, set_enabled
from roundhouse.console.database.database import Database
from roundhouse.console.errors import ConflictError
from roundhouse.console.models import ApiToken, AuditEntry, User

ADMIN = Actor(0, "somebody", "admin", "browser", "")
NEW = {"name": "Bob", "password": PASSWORD, "role": "operator"}


def user(database: Database, name: str) -> User:
    with database.reading() as session:
        return session.scalars(select(User).where(User.name == name)).one()


def actions(database: Database) -> list[str]:
    with database.reading() as session:
        return [entry.action for entry in session.scalars(select(AuditEntry).order_by(AuditEntry.id))]


def token_of(database: Database, name: str) -> tuple[int, str]:
    with database.writing() as session:
        token, secret = add_token(session, user(database, name).id, "a script", ["read"], None)
        return token.id, secret


def test_an_admin_adds_somebody_who_can_log_in(browser: BrowserMaker, database: Database) -> None:
    admin = browser("admin")
    answer = admin.submit("/users", NEW)
    assert answer.status_code == 200
    assert "bob can log in now, as operator." in answer.text
    browser().log_in("bob")
    assert user(database, "bob").role == "operator"
    assert actions(database)[-2:] == ["user.add", "login"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"name": "a b"}, "no account name"), ({"name": "the-admin"}, "already"), ({"password": "short"}, "12 to 1,024")],
)
def test_what_makes_no_account_is_said_beside_what_was_typed(
    browser: BrowserMaker, database: Database, wrong: dict[str, str], said: str
) -> None:
    admin = browser("admin")
    answer = admin.submit("/users", NEW | wrong)
    assert answer.status_code == 422
    assert said in answer.text
    assert f'value="{(NEW | wrong)["name"]}"' in answer.text
    assert (NEW | wrong)["password"] not in answer.text
    with database.reading() as session:
        assert len(session.scalars(select(User)).all()) == 1


def test_another_role_holds_from_the_next_request(browser: BrowserMaker) -> None:
    admin, viewer = browser("admin"), browser("viewer")
    assert viewer.get("/users").status_code == 403
    admin.submit("/users/the-viewer/role", {"role": "admin"})
    assert viewer.get("/users").status_code == 200


def test_who_is_disabled_is_out_at_once_and_comes_back_when_enabled(browser: BrowserMaker, database: Database) -> None:
    admin, viewer = browser("admin"), browser("viewer")
    _, secret = token_of(database, "the-viewer")
    bearer = {"authorization": f"Bearer {secret}"}
    assert browser().get("/api/v1/account", headers=bearer).status_code == 200
    admin.submit("/users/the-viewer/disable")
    assert viewer.get("/", follow_redirects=False).status_code == 303
    assert browser().get("/api/v1/account", headers=bearer).status_code == 401
    form = {"name": "the-viewer", "password": PASSWORD}
    assert browser().post("/login", data=form, headers={"origin": ORIGIN}).status_code == 401
    admin.submit("/users/the-viewer/enable")
    assert viewer.get("/", follow_redirects=False).status_code == 303, "its logins are gone for good"
    assert browser().get("/api/v1/account", headers=bearer).status_code == 200


def test_another_password_ends_all_logins(browser: BrowserMaker) -> None:
    admin, viewer = browser("admin"), browser("viewer")
    assert "12 to 1,024" in admin.submit("/users/the-viewer/password", {"password": "short"}).text
    admin.submit("/users/the-viewer/password", {"password": "another long password"})
    assert viewer.get("/", follow_redirects=False).status_code == 303
    viewer.log_in("the-viewer", "another long password")


def test_all_logins_are_ended(browser: BrowserMaker) -> None:
    admin, viewer = browser("admin"), browser("viewer")
    assert "(1 logins)" in admin.submit("/users/the-viewer/logins/end").text
    assert viewer.get("/", follow_redirects=False).status_code == 303


def test_an_admin_sees_and_revokes_everybodys_tokens(browser: BrowserMaker, database: Database) -> None:
    admin = browser("admin")
    browser("viewer")
    number, secret = token_of(database, "the-viewer")
    page = admin.get("/users/the-viewer").text
    assert "a script" in page
    assert secret not in page
    path = f"/users/the-viewer/tokens/{number}/revoke"
    assert "a script" in admin.get(path).text
    admin.submit(path)
    assert browser().get("/api/v1/account", headers={"authorization": f"Bearer {secret}"}).status_code == 401
    assert admin.submit(f"/users/the-admin/tokens/{number}/revoke").status_code == 404
    assert actions(database).count("token.revoke") == 1


@pytest.mark.parametrize("way", ["role", "disable", "api role", "api disable"])
def test_the_last_admin_stays(browser: BrowserMaker, database: Database, way: str) -> None:
    admin = browser("admin")
    with database.writing() as session:
        add_account(session, "retired", hash_password(PASSWORD), "admin").disabled_at = user(database, "the-admin").created_at
    if way.startswith("api"):
        changes = {"role": "viewer"} if way == "api role" else {"enabled": False}
        headers = {"origin": ORIGIN, "x-form-token": admin.form_token()}
        answer = admin.patch("/api/v1/users/the-admin", json=changes, headers=headers)
    else:
        answer = admin.submit(f"/users/the-admin/{way}", {"role": "viewer"} if way == "role" else {})
    assert answer.status_code == (409 if way.startswith("api") else 200)  # a browser is led back to the account
    assert "the only admin that can log in" in answer.text
    assert way.startswith("api") or '<div class="flash flash-problem" role="alert">' in answer.text
    assert user(database, "the-admin").role == "admin"
    assert admin.get("/users").status_code == 200
    admin.submit("/users", NEW | {"role": "admin"})
    assert admin.submit("/users/the-admin/disable").status_code == 200


def test_who_gives_the_role_away_comes_to_a_page_that_they_may_see(browser: BrowserMaker) -> None:
    admin = browser("admin")
    browser("admin", "another")
    answer = admin.submit("/users/the-admin/role", {"role": "viewer"})
    assert (answer.status_code, "You are viewer now." in answer.text) == (200, True)


@pytest.mark.parametrize(
    "act",
    [
        lambda session, name: change_role(session, ADMIN, name, "viewer"),
        lambda session, name: set_enabled(session, ADMIN, name, enabled=False),
    ],
    ids=["demoted", "disabled"],
)
def test_of_admins_that_all_go_at_once_one_stays(database: Database, act: Callable[[Session, str], None]) -> None:
    names = ["ann", "bob", "cleo", "dora"]
    with database.writing() as session:
        for name in names:
            add_account(session, name, hash_password(PASSWORD), "admin")
    together = threading.Barrier(len(names))

    def went(name: str) -> bool:
        with database.writing() as session:
            if not database.is_sqlite:  # where the second writer waits for the first anyway
                together.wait(timeout=30)
            try:
                act(session, name)
            except ConflictError:
                return False
            return True

    with ThreadPoolExecutor(len(names)) as pool:
        assert sorted(pool.map(went, names)) == [False, True, True, True]
    with database.reading() as session:
        left = select(User).where(User.role == "admin", User.disabled_at.is_(None))
        assert len(session.scalars(left).all()) == 1


def test_the_list_has_filters_in_its_address_and_a_fixed_number_of_statements(
    browser: BrowserMaker, database: Database
) -> None:
    admin = browser("admin")
    with database.writing() as session:
        for number in range(60):
            add_account(session, f"user-{number:02}", hash_password(PASSWORD), "viewer")
    with count_queries(database) as few:
        admin.get("/users?size=1")
    with count_queries(database) as many:
        page = admin.get("/users?size=50&role=viewer")
    assert len(few) == len(many)
    assert "1–50 of 60" in page.text
    assert "/users?role=viewer&amp;page=2" in page.text
    assert "user-07" in admin.get("/users?text=SER-07").text
    assert "Nobody fits this." in admin.get("/users?text=%25").text
    assert admin.get("/users?role=king").status_code == 422


def test_programs_of_admins_can_do_all_of_it(browser: BrowserMaker, database: Database) -> None:
    admin = browser("admin")
    with database.writing() as session:
        _, secret = add_token(session, user(database, "the-admin").id, "ansible", ["read", "admin"], None)
    program = browser()
    program.headers["authorization"] = f"Bearer {secret}"
    made = program.post("/api/v1/users", json=NEW)
    assert (made.status_code, made.headers["location"], made.json()["name"]) == (201, "/api/v1/users/bob", "bob")
    assert "password" not in made.text
    twice = program.post("/api/v1/users", json=NEW)
    assert (twice.status_code, twice.json()["errors"][0]["field"]) == (422, "name")
    assert twice.headers["content-type"] == "application/problem+json"
    changed = program.patch("/api/v1/users/bob", json={"role": "viewer", "enabled": False})
    assert (changed.json()["role"], changed.json()["state"]) == ("viewer", "disabled")
    half = program.patch("/api/v1/users/bob", json={"role": "admin", "password": "short"})
    assert half.status_code == 422
    assert program.get("/api/v1/users/bob").json()["role"] == "viewer", "half of a change was made"
    assert program.get("/api/v1/users?role=viewer").json()["total"] == 1
    assert program.delete("/api/v1/users/bob/logins").status_code == 204
    number, _ = token_of(database, "bob")
    assert program.get("/api/v1/users/bob/tokens").json()[0]["id"] == number
    assert program.delete(f"/api/v1/users/bob/tokens/{number}").status_code == 204
    with database.reading() as session:
        assert session.get_one(ApiToken, number).revoked_at is not None
        by = {entry.by for entry in session.scalars(select(AuditEntry).where(AuditEntry.subject == "bob"))}
    assert by == {"token ansible"}
    _same_for_a_browser(admin)


def _same_for_a_browser(admin: Browser) -> None:
    assert admin.get("/api/v1/users").status_code == 200
