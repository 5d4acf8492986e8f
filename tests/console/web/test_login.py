"""How somebody comes in: the first link, passwords, and what a login is worth."""

from __future__ import annotations

from datetime import timedelta

import pytest
from browsing import ORIGIN, PASSWORD, BrowserMaker
from sqlalchemy import select, update

from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.access.logins import Logins
from roundhouse.console.access.secrets import hash_of
from roundhouse.console.accounts.queries import logins_of
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import AuditEntry, LoginSession, User


def first_link(maker: BrowserMaker) -> str:
    return maker().app.state.roundhouse.first_account.secret  # type: ignore[attr-defined,no-any-return]  # FastAPI's


def set_up(maker: BrowserMaker, **changes: str) -> tuple[int, str]:
    form = {"name": "Ann", "password": PASSWORD, "again": PASSWORD, "token": first_link(maker)} | changes
    answer = maker().post("/setup", data=form, headers={"origin": ORIGIN})
    return answer.status_code, answer.text


def test_the_first_link_makes_one_admin_once(browser: BrowserMaker, database: Database) -> None:
    assert browser().get("/setup", params={"token": "guessed"}).status_code == 403
    assert browser().get("/setup", params={"token": first_link(browser)}).status_code == 200
    assert set_up(browser, token="guessed")[0] == 403
    assert set_up(browser, again="something else")[0] == 422
    assert set_up(browser, password="short", again="short")[0] == 422
    status, text = set_up(browser)
    assert (status, "<h1" in text) == (200, True)
    assert set_up(browser, name="eve")[0] == 403
    assert browser().get("/setup", params={"token": first_link(browser)}).status_code == 403
    with database.reading() as session:
        assert [(user.name, user.role) for user in session.scalars(select(User))] == [("ann", "admin")]
        assert [entry.action for entry in session.scalars(select(AuditEntry))] == ["user.add", "login"]


def test_who_is_not_logged_in_is_sent_to_the_login_and_back(browser: BrowserMaker) -> None:
    nobody = browser()
    for path, login in (("/", "/login"), ("/?a=1&b=2", "/login?next=%2F%3Fa%3D1%26b%3D2")):
        answer = nobody.get(path, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, login)
    browser("viewer")
    form = {"name": "the-viewer", "password": PASSWORD, "next": "/builds?state=failed"}
    answer = nobody.post("/login", data=form, headers={"origin": ORIGIN}, follow_redirects=False)
    assert answer.headers["location"] == "/builds?state=failed"


@pytest.mark.parametrize(
    "there", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb"]
)
def test_a_login_leads_nowhere_else(browser: BrowserMaker, there: str) -> None:
    browser("viewer")
    form = {"name": "the-viewer", "password": PASSWORD, "next": there}
    answer = browser().post("/login", data=form, headers={"origin": ORIGIN}, follow_redirects=False)
    assert answer.headers["location"] == "/"


def test_wrong_passwords_are_slowed_down_for_the_account_and_the_address(browser: BrowserMaker) -> None:
    browser("viewer")
    nobody = browser()
    wrong = {"name": "the-viewer", "password": "wrong"}
    answers = [nobody.post("/login", data=wrong, headers={"origin": ORIGIN}).status_code for _ in range(10)]
    assert answers == [401] * 8 + [429] * 2
    right = {"name": "the-viewer", "password": PASSWORD}
    assert nobody.post("/login", data=right, headers={"origin": ORIGIN}).status_code == 429


def test_no_account_and_a_wrong_password_look_the_same(browser: BrowserMaker) -> None:
    browser("viewer")
    nobody = browser()
    texts = [
        nobody.post("/login", data={"name": name, "password": "x" * 12}, headers={"origin": ORIGIN}).text.replace(name, "")
        for name in ("the-viewer", "nobody-at-all")
    ]
    assert texts[0] == texts[1]


def test_a_login_is_new_each_time_and_ends_at_logout(browser: BrowserMaker, database: Database) -> None:
    viewer = browser("viewer")
    before = viewer.cookies["roundhouse_login"]
    viewer.log_in("the-viewer")
    after = viewer.cookies["roundhouse_login"]
    assert before != after
    thief = browser()
    thief.cookies.set("roundhouse_login", before, domain="127.0.0.1")
    assert thief.get("/", follow_redirects=False).status_code == 303
    viewer.submit("/logout")
    thief.cookies.set("roundhouse_login", after, domain="127.0.0.1")
    assert thief.get("/", follow_redirects=False).status_code == 303
    with database.reading() as session:
        assert session.scalars(select(LoginSession)).all() == []


def test_of_an_accounts_logins_the_fifty_used_last_stay(database: Database) -> None:
    now = utc_now()
    with database.writing() as session:
        ann, bob = (add_account(session, name, hash_password(PASSWORD), "viewer") for name in ("ann", "bob"))
        old = Logins(lambda: now - timedelta(hours=30))
        in_use, idle, his = (old.begin(session, user, address="", browser="") for user in (ann, ann, bob))
        session.flush()
        session.execute(update(LoginSession).where(LoginSession.token_hash == hash_of(in_use)).values(seen_at=now))
        newer = [Logins(lambda: now).begin(session, ann, address="", browser="") for _ in range(49)]
    with database.reading() as session:
        assert len(logins_of(session, ann.id)) == 50
        found = {token: Logins().find(session, token) is not None for token in (in_use, idle, his, *newer)}
    assert [token for token, there in found.items() if not there] == [idle]


def test_the_cookie_is_for_this_site_and_no_script(browser: BrowserMaker) -> None:
    browser("viewer")
    form = {"name": "the-viewer", "password": PASSWORD}
    cookie = browser().post("/login", data=form, headers={"origin": ORIGIN}, follow_redirects=False).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
