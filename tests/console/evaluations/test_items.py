"""Single questions of an evaluation."""

from __future__ import annotations

import gzip
import json

import pytest
from measured import add_evaluations
from sqlalchemy import update

from roundhouse.console.database.database import Database
from roundhouse.console.evaluations import items as reading
from roundhouse.console.evaluations.items import ItemShow, items_of
from roundhouse.console.evaluations.task_choices import PUBLIC, SHIPPED
from roundhouse.console.models import RecordFile
from roundhouse.console.paging import PageOf
from roundhouse.serve.accuracy.tasks import TASK_NAMES

TOLD = {"asked": "?", "answered": "!", "wanted": None}


def keep(database: Database, content: bytes) -> str:
    with database.writing() as session:
        (made,) = add_evaluations(session)
        session.execute(update(RecordFile).where(RecordFile.record_id == made).values(content=content))
    return made


def packed(*lines: dict[str, object]) -> bytes:
    return gzip.compress("".join(f"{json.dumps({'task': 't', **TOLD, **line})}\n" for line in lines).encode())


ANSWERS = packed(*({"number": number, "score": number % 2, "base_score": int(number < 2)} for number in range(5)))


@pytest.mark.parametrize(("show", "numbers"), [("all", [0, 2, 4, 1, 3]), ("wrong", [0, 2, 4]), ("lost", [0]), ("won", [3])])
def test_the_wrong_come_first_and_what_was_lost_before_them(database: Database, show: ItemShow, numbers: list[int]) -> None:
    made = keep(database, ANSWERS)
    with database.reading() as session:
        found = items_of(session, made, "t", show, PageOf())
    assert found is not None
    assert [item.number for item in found.items.items] == numbers
    assert found.counts == {"all": 5, "wrong": 3, "lost": 1, "won": 1}


def test_they_are_shown_in_pages(database: Database) -> None:
    made = keep(database, ANSWERS)
    with database.reading() as session:
        found = items_of(session, made, "t", "all", PageOf(number=3, size=2))
    assert found is not None
    assert [item.number for item in found.items.items] == [3]
    assert found.items.pages == 3


def test_a_sum_over_tokens_is_neither_right_nor_wrong(database: Database) -> None:
    made = keep(database, packed({"number": 0, "score": -10.0, "tokens": 5}, {"number": 1, "score": -30.0, "tokens": 5}))
    with database.reading() as session:
        found = items_of(session, made, "t", "all", PageOf())
    assert found is not None
    assert [item.number for item in found.items.items] == [1, 0]
    assert found.counts["wrong"] == 0


def test_what_cannot_be_read_is_counted_and_no_more_than_a_limit_is_unpacked(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = keep(database, packed({"number": 0, "score": 1}, {"number": "x", "score": 1}))
    with database.reading() as session:
        found = items_of(session, made, "t", "all", PageOf())
    assert found is not None
    assert (found.unreadable, found.is_cut) == (1, False)
    monkeypatch.setattr(reading, "_MOST_BYTES", 100)
    with database.reading() as session:
        cut = items_of(session, made, "t", "all", PageOf())
    assert cut is not None
    assert (cut.counts["all"], cut.is_cut) == (1, True)


def test_a_file_that_is_none_has_no_questions_and_none_kept_is_said(database: Database) -> None:
    made = keep(database, b"this is not gzip")
    with database.reading() as session:
        found = items_of(session, made, "t", "all", PageOf())
        assert found is not None
        assert found.items.total == 0
        assert items_of(session, "e99999999999", "t", "all", PageOf()) is None


def test_the_form_offers_every_task_there_is() -> None:
    assert tuple(choice.name for choice in (*SHIPPED, *PUBLIC)) == TASK_NAMES
