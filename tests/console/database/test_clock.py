"""Machines whose clocks differ reckon with the clock of the database that they share."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from roundhouse.console.database import clock as clocks
from roundhouse.console.database.clock import Clock, utc_now
from roundhouse.console.database.database import Database

WRONG = timedelta(hours=3)


class WrongClock(Clock):
    """Of a machine whose own clock is ahead."""

    def of_machine(self) -> datetime:
        return datetime.now(UTC) + WRONG


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    found = WrongClock()
    for module in ("clock", "database"):
        monkeypatch.setattr(f"roundhouse.console.database.{module}.clock", found)
    yield found
    assert clocks.clock is found


def test_a_machine_that_is_wrong_takes_the_servers_word(
    database: Database, machine: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    before = utc_now()
    with database.reading() as session:
        session.execute(text("SELECT 1"))
    off = abs(utc_now() - datetime.now(UTC))
    if database.is_sqlite:  # one machine has it: its clock is the only one
        assert off > WRONG / 2
        return
    assert before - utc_now() > WRONG / 2
    assert off < timedelta(minutes=1)
    assert f"by {-WRONG.total_seconds():.0f} s" in caplog.text


def test_a_clock_does_not_jump_for_what_cannot_be_known() -> None:
    clock = Clock()
    now = clock.of_machine()
    clock.follow(now + timedelta(seconds=0.4), now, now)
    clock.follow(now + timedelta(seconds=30), now, now + timedelta(seconds=60))
    assert abs(clock.now() - clock.of_machine()) < timedelta(seconds=0.1)
    clock.follow(now - timedelta(seconds=40), now, now)
    assert timedelta(seconds=39) < clock.of_machine() - clock.now() < timedelta(seconds=41)
