"""What accounts have chosen."""

from __future__ import annotations

import pytest
from sqlalchemy import delete

from roundhouse.console.access.accounts import HashedPassword, add_account
from roundhouse.console.database.database import Database
from roundhouse.console.errors import FieldError
from roundhouse.console.models import User
from roundhouse.console.preferences.choices import forget_preference, preference, set_preference


def test_each_account_has_its_own_and_the_last_counts(database: Database) -> None:
    with database.writing() as session:
        ann, ben = (add_account(session, name, HashedPassword("x"), "viewer").id for name in ("ann", "ben"))
        set_preference(session, ann, "benchmarks.columns", ["a"])
        set_preference(session, ann, "benchmarks.columns", ["b", "ü"])
        set_preference(session, ben, "benchmarks.columns", {"c": None})
    with database.reading() as session:
        assert preference(session, ann, "benchmarks.columns") == ["b", "ü"]
        assert preference(session, ben, "benchmarks.columns") == {"c": None}
        assert preference(session, ann, "other") is None
    with database.writing() as session:
        forget_preference(session, ann, "benchmarks.columns")
        session.execute(delete(User).where(User.id == ben))
    with database.reading() as session:
        assert [preference(session, user, "benchmarks.columns") for user in (ann, ben)] == [None, None]


def test_nobody_fills_the_database_with_choices(database: Database) -> None:
    with database.writing() as session:
        ann = add_account(session, "ann", HashedPassword("x"), "viewer").id
        for key, value in (("", 1), ("k" * 65, 1), ("k", "x" * 5000)):
            with pytest.raises(FieldError):
                set_preference(session, ann, key, value)
        for number in range(100):
            set_preference(session, ann, f"k{number}", number)
        set_preference(session, ann, "k0", "again")
        with pytest.raises(FieldError, match="at most"):
            set_preference(session, ann, "one more", 1)
