"""Accounts, passwords and logins."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, text

from roundhouse.console.access.accounts import add_account, any_accounts, hash_password, password_fits
from roundhouse.console.access.logins import Logins
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import LoginSession, User
from roundhouse.errors import UsageError

PASSWORD = "correct horse battery"


class Clock:
    def __init__(self) -> None:
        self.now = utc_now()

    def __call__(self) -> Any:
        return self.now


def ann(database: Database) -> User:
    with database.writing() as session:
        return add_account(session, " Ann ", hash_password(PASSWORD), "operator")


def test_an_account_is_known_by_its_name_and_password(database: Database) -> None:
    with database.reading() as session:
        assert not any_accounts(session)
    user = ann(database)
    with database.reading() as session:
        assert any_accounts(session)
        assert session.scalar(select(User.name)) == "ann"
    assert password_fits(user, PASSWORD)
    assert not password_fits(user, PASSWORD + "x")
    assert not password_fits(None, PASSWORD)
    user.password_hash = hash_password("another long password")
    assert not password_fits(user, PASSWORD)
    user.disabled_at = utc_now()
    assert not password_fits(user, "another long password")


@pytest.mark.parametrize(
    ("name", "password", "why"),
    [
        ("ann", PASSWORD, "already"),
        ("", PASSWORD, "no account name"),
        ("a/b", PASSWORD, "no account name"),
        ("bob", "short", "12"),
    ],
)
def test_what_makes_no_account(database: Database, name: str, password: str, why: str) -> None:
    ann(database)
    with database.writing() as session, pytest.raises(UsageError, match=why):
        add_account(session, name, hash_password(password), "viewer")


def test_a_login_lasts_until_it_is_over(database: Database) -> None:
    clock = Clock()
    logins, user = Logins(clock), ann(database)
    with database.writing() as session:
        token = logins.begin(session, session.merge(user), address="127.0.0.1", browser="b" * 500)
    with database.reading() as session:
        found = logins.find(session, token)
        assert found is not None
        assert found[1].name == "ann"
        assert logins.find(session, token + "x") is None
    clock.now += timedelta(days=1)
    logins.saw(database, found[0])
    clock.now += timedelta(days=1.5)
    with database.writing() as session:
        assert logins.find(session, token) is not None
        clock.now += timedelta(days=1)
        assert logins.find(session, token) is None
        logins.forget_old(session)
        assert session.scalars(select(LoginSession)).all() == []


def test_logging_in_again_ends_the_login_before_and_a_disabled_account_has_none(database: Database) -> None:
    logins, user = Logins(), ann(database)
    with database.writing() as session:
        first = logins.begin(session, session.merge(user), address="", browser="")
        second = logins.begin(session, session.merge(user), address="", browser="", replaces=first)
        assert logins.find(session, first) is None
        assert logins.find(session, second) is not None
        session.get_one(User, user.id).disabled_at = utc_now()
        session.flush()
        assert logins.find(session, second) is None


def test_nothing_in_the_database_lets_anybody_in(database: Database) -> None:
    logins, user = Logins(), ann(database)
    with database.writing() as session:
        token = logins.begin(session, session.merge(user), address="", browser="")
    with database.reading() as session:
        rows = [
            str(row) for table in ("user_account", "login_session") for row in session.execute(text(f"SELECT * FROM {table}"))
        ]
    assert not any(secret in row for row in rows for secret in (token, PASSWORD))
