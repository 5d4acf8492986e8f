"""One's own account, and nobody else's."""

from __future__ import annotations

import re

import pytest
from browsing import ORIGIN, PASSWORD, Browser, BrowserMaker
from sqlalchemy import select

from roundhouse.console.access.tokens import add_token
from roundhouse.console.database.database import Database
from roundhouse.console.models import ApiToken, AuditEntry, LoginSession, User

OTHER = "another long password"


def make_token(somebody: Browser, **form: object) -> tuple[int, str]:
    """The number of a new token, and what it is."""
    data = {"form_token": somebody.form_token(), "name": "a script", "scopes": ["read"], "days": "30"} | form
    answer = somebody.post("/account/tokens", data=data, headers={"origin": ORIGIN})
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    secret = re.search(r"rh_[\w-]{43}", answer.text)
    assert secret is not None
    found = browser_get(somebody, "/api/v1/account/tokens")
    return found[0]["id"], secret[0]


def browser_get(somebody: Browser, path: str) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = somebody.get(path).json()
    return listed


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def test_a_token_is_shown_once_and_works_until_it_is_revoked(browser: BrowserMaker, database: Database) -> None:
    operator = browser("operator")
    number, secret = make_token(operator, scopes=["read", "build"])
    program = browser()
    told = program.get("/api/v1/account", headers=bearer(secret)).json()
    assert told == {"name": "the-operator", "role": "operator", "by": "token a script", "scopes": ["read", "build"]}
    page = operator.get("/account").text
    assert secret[:8] in page
    assert secret not in page
    with database.reading() as session:
        rows = [str(row) for table in (ApiToken, AuditEntry) for row in session.execute(select(*table.__table__.columns))]
    assert not any(secret in row for row in rows)
    operator.submit(f"/account/tokens/{number}/revoke")
    assert program.get("/api/v1/account", headers=bearer(secret)).status_code == 401


def test_sending_the_form_of_a_token_again_makes_no_second_one(browser: BrowserMaker, database: Database) -> None:
    operator = browser("operator")
    number, _ = make_token(operator)
    form = {"form_token": operator.form_token(), "name": "a script", "scopes": ["read"], "days": "7"}
    again = operator.post("/account/tokens", data=form, headers={"origin": ORIGIN})
    assert again.status_code == 422
    assert "you have a token a script already" in again.text
    with database.reading() as session:
        assert len(session.scalars(select(ApiToken)).all()) == 1
    operator.submit(f"/account/tokens/{number}/revoke")
    make_token(operator)  # the name is free again


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"name": " "}, "a token has a name"),
        ({"scopes": []}, "could do nothing"),
        ({"scopes": ["fly"]}, "no scope"),
        ({"scopes": ["read", "build"]}, "a viewer may not build"),
        ({"scopes": ["admin"]}, "a viewer may not admin"),
    ],
)
def test_a_token_may_no_more_than_its_owner(browser: BrowserMaker, form: dict[str, object], said: str) -> None:
    viewer = browser("viewer")
    data = {"form_token": viewer.form_token(), "name": "x", "scopes": ["read"], "days": "7"} | form
    answer = viewer.post("/account/tokens", data=data, headers={"origin": ORIGIN})
    assert answer.status_code == 422
    assert said in answer.text
    assert browser_get(viewer, "/api/v1/account/tokens") == []


def test_a_token_loses_what_its_owner_loses(browser: BrowserMaker) -> None:
    admin, operator = browser("admin"), browser("operator")
    _, secret = make_token(operator, scopes=["read", "build"])
    admin.submit("/users/the-operator/role", {"role": "viewer"})
    assert browser().get("/api/v1/account", headers=bearer(secret)).json()["scopes"] == ["read"]


def test_a_token_makes_no_tokens_and_takes_no_account_over(browser: BrowserMaker, database: Database) -> None:
    browser("admin")
    with database.writing() as session:
        admin = session.scalars(select(User)).one()
        token, secret = add_token(session, admin.id, "lost", ["read", "build", "deploy", "admin"], None)
    thief = browser()
    form = {"old": PASSWORD, "password": OTHER, "again": OTHER}
    assert thief.post("/account/password", data=form, headers=bearer(secret)).status_code == 403
    wanted = {"name": "mine", "scopes": ["admin"], "days": None}
    assert thief.post("/api/v1/account/tokens", json=wanted, headers=bearer(secret)).status_code == 403
    assert thief.delete(f"/api/v1/account/tokens/{token.id}", headers=bearer(secret)).status_code == 403


def test_nobody_touches_what_is_anothers(browser: BrowserMaker, database: Database) -> None:
    victim, eve = browser("operator", "victim"), browser("operator", "eve")
    number, secret = make_token(victim)
    with database.reading() as session:
        owner = session.scalars(select(User.id).where(User.name == "victim")).one()
        handle = session.scalars(select(LoginSession.token_hash).where(LoginSession.user_id == owner)).one()[:16]
    headers = {"origin": ORIGIN, "x-form-token": eve.form_token()}
    tries = [
        eve.get(f"/account/tokens/{number}/revoke"),
        eve.submit(f"/account/tokens/{number}/revoke"),
        eve.submit(f"/account/logins/{handle}/end"),
        eve.delete(f"/api/v1/account/tokens/{number}", headers=headers),
        eve.delete(f"/api/v1/account/logins/{handle}", headers=headers),
    ]
    assert [answer.status_code for answer in tries] == [404] * 5
    forbidden = [
        eve.submit(f"/users/victim/tokens/{number}/revoke"),
        eve.submit("/users/victim/logins/end"),
        eve.submit("/users/victim/password", {"password": OTHER}),
        eve.delete(f"/api/v1/users/victim/tokens/{number}", headers=headers),
        eve.delete("/api/v1/users/victim/logins", headers=headers),
        eve.patch("/api/v1/users/eve", json={"role": "admin"}, headers=headers),
    ]
    assert [answer.status_code for answer in forbidden] == [403] * 6
    assert victim.get("/account").status_code == 200
    assert browser().get("/api/v1/account", headers=bearer(secret)).status_code == 200


def test_ones_own_logins_are_ended_one_by_one_or_all_others(browser: BrowserMaker) -> None:
    here = browser("viewer")
    there, third = browser(), browser()
    there.log_in("the-viewer")
    third.log_in("the-viewer")
    listed = browser_get(here, "/api/v1/account/logins")
    assert [login["is_this_one"] for login in listed].count(True) == 1
    other = next(login["handle"] for login in browser_get(there, "/api/v1/account/logins") if login["is_this_one"])
    assert f"/account/logins/{other}/end" in here.get("/account").text
    here.submit(f"/account/logins/{other}/end")
    assert there.get("/", follow_redirects=False).status_code == 303
    assert third.get("/", follow_redirects=False).status_code == 200
    assert "(1 logins)" in here.submit("/account/logins/end").text
    assert third.get("/", follow_redirects=False).status_code == 303
    assert here.get("/account").status_code == 200
    for not_one in ("", "%", "0" * 16, other[:4] if isinstance(other, str) else ""):
        assert here.submit(f"/account/logins/{not_one}/end").status_code in (404, 405)


def test_another_password_logs_out_everywhere_else_and_this_login_is_a_new_one(browser: BrowserMaker) -> None:
    here = browser("viewer")
    there = browser()
    there.log_in("the-viewer")
    before = here.cookies["roundhouse_login"]
    form = {"old": PASSWORD, "password": OTHER, "again": OTHER}
    assert "logged out everywhere else" in here.submit("/account/password", form).text
    assert here.cookies["roundhouse_login"] != before
    thief = browser()
    thief.cookies.set("roundhouse_login", before, domain="127.0.0.1")
    assert thief.get("/", follow_redirects=False).status_code == 303
    assert there.get("/", follow_redirects=False).status_code == 303
    browser().log_in("the-viewer", OTHER)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"old": "wrong"}, "not your password"),
        ({"again": "x"}, "differ"),
        ({"password": "short", "again": "short"}, "12 to 1,024"),
    ],
)
def test_a_password_is_not_changed_by_mistake(browser: BrowserMaker, form: dict[str, str], said: str) -> None:
    viewer = browser("viewer")
    answer = viewer.submit("/account/password", {"old": PASSWORD, "password": OTHER, "again": OTHER} | form)
    assert answer.status_code == 422
    assert said in answer.text
    browser().log_in("the-viewer")


def test_who_found_a_browser_open_cannot_guess_its_password(browser: BrowserMaker) -> None:
    viewer = browser("viewer")
    form = {"old": "wrong", "password": OTHER, "again": OTHER}
    answers = [viewer.submit("/account/password", form).status_code for _ in range(10)]
    assert answers == [422] * 8 + [429] * 2
