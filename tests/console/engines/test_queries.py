"""Lists of engines and their filters, and one engine with all that hangs on it."""

from __future__ import annotations

from typing import Any

import pytest
from built import ID, add_built
from counting import count_queries
from deployed import add_deployment
from sqlalchemy import update

from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.engines.queries import engine_detail, hosts_with_engines, list_engines
from roundhouse.console.engines.records import EngineFilter, EngineSort
from roundhouse.console.errors import NotFoundError
from roundhouse.console.models import EngineReplica, Job
from roundhouse.console.paging import PageOf

IDS = ("a" * 16, "b" * 16, "c" * 16, "d" * 16)


@pytest.fixture
def filled(database: Database) -> Database:
    """Four engines: whole on one; whole on one and damaged on two; damaged; gone."""
    with database.writing() as session:
        add_built(session, IDS[0], "apple", weights="fp8", created="2026-11-01T00:00:00+00:00")
        add_built(session, IDS[1], "pear", created="2026-11-02T00:00:00+00:00")
        add_built(session, IDS[1], "pear", host="two", created="2026-11-02T00:00:00+00:00")
        add_built(session, IDS[2], "plum_tart", kv_cache="bf16", created="2026-11-03T00:00:00+00:00")
        add_built(session, IDS[3], "quince", created="2026-11-04T00:00:00+00:00")
        copies = update(EngineReplica).values(state="damaged", problem="a file has changed")
        session.execute(copies.where(EngineReplica.host == "two"))
        session.execute(copies.where(EngineReplica.engine_id == IDS[2]))
        session.query(EngineReplica).where(EngineReplica.engine_id == IDS[3]).delete()
    return database


def names(database: Database, sort: EngineSort = "-made", page: PageOf | None = None, **wanted: Any) -> list[str]:
    with database.reading() as session:
        return [row.name for row in list_engines(session, EngineFilter(**wanted), page or PageOf(), sort).items]


def test_filters_leave_out_what_does_not_fit(filled: Database) -> None:
    assert names(filled) == ["plum_tart", "pear", "apple"]
    assert names(filled, state="any") == ["quince", "plum_tart", "pear", "apple"]
    assert names(filled, state="gone") == ["quince"]
    assert names(filled, state="damaged") == ["plum_tart"]
    assert names(filled, state="present") == ["pear", "apple"]
    assert names(filled, host="two") == ["pear"]
    assert names(filled, weights="fp8") == ["apple"]
    assert names(filled, kv_cache="bf16") == ["plum_tart"]
    assert names(filled, target="tensorrt") == []
    assert names(filled, text="PLUM_") == ["plum_tart"]
    assert names(filled, text="_") == ["plum_tart"]  # a sign like any other
    assert names(filled, text="bbbb") == ["pear"]
    assert names(filled, text="Qwen3", weights="fp8") == ["apple"]


def test_lists_are_sorted_and_come_in_parts(filled: Database) -> None:
    assert names(filled, "name") == ["apple", "pear", "plum_tart"]
    assert names(filled, "-name", PageOf(number=2, size=2)) == ["apple"]
    assert names(filled, "-size")[0] in ("apple", "pear", "plum_tart")
    with filled.reading() as session:
        part = list_engines(session, EngineFilter(), PageOf(number=2, size=2))
    assert (part.total, part.pages, len(part.items)) == (3, 2, 1)


def test_states_and_hosts_come_from_the_copies(filled: Database) -> None:
    with filled.writing() as session:
        add_deployment(session, engine_id=IDS[1])
        add_deployment(session, "bbbbbbbb", engine_id=IDS[1], state="stopped")
    with filled.reading() as session:
        rows = {row.name: row for row in list_engines(session, EngineFilter(state="any"), PageOf()).items}
        assert hosts_with_engines(session) == ("one", "two")
    assert {name: row.state for name, row in rows.items()} == {
        "apple": "present", "pear": "present", "plum_tart": "damaged", "quince": "gone",
    }  # fmt: skip
    assert (rows["pear"].hosts, rows["pear"].damaged_hosts, rows["pear"].live_deployments) == (("one",), ("two",), 1)


def test_a_longer_list_takes_no_more_statements(filled: Database) -> None:
    def statements() -> int:
        with filled.reading() as session, count_queries(filled) as seen:
            list_engines(session, EngineFilter(), PageOf())
        return len(seen)

    few = statements()
    with filled.writing() as session:
        for number in range(12):
            add_built(session, f"{number:016x}", f"more-{number}")
            add_deployment(session, f"{number:08x}", engine_id=f"{number:016x}")
    assert statements() == few


def test_an_engines_detail_has_what_hangs_on_it(filled: Database) -> None:
    job: dict[str, Any] = {
        "subject": "pear",
        "payload": {},
        "requested_by": "ann",
        "created_at": utc_now(),
        "engine_id": IDS[1],
    }
    with filled.writing() as session:
        add_built(session, "e" * 16, "other-files", model_fingerprint="ef" * 32)
        add_deployment(session, "11111111", engine_id=IDS[1], state="stopped")
        add_deployment(session, "22222222", engine_id=IDS[1])
        session.add(Job(kind="build", state="failed", **job))
        session.add(Job(kind="build", state="succeeded", **job))
        session.add(Job(kind="verify", state="queued", host="two", home="/srv/roundhouse", **job))
    with filled.reading() as session:
        found = engine_detail(session, IDS[1])
    assert [copy.host for copy in found.replicas] == ["one", "two"]
    assert [(each.id, each.is_live) for each in found.deployments] == [("22222222", True), ("11111111", False)]
    assert {each.name: each.same_input for each in found.siblings} == {
        "apple": True, "plum_tart": True, "quince": True, "other-files": False,
    }  # fmt: skip
    assert found.built_by is not None
    assert found.built_by.state == "succeeded"
    assert [copy.host for copy in found.replicas if found.live_job("verify", copy)] == ["two"]
    assert found.manifest["id"] == IDS[1]


def test_there_may_be_no_such_engine(database: Database) -> None:
    with database.reading() as session, pytest.raises(NotFoundError, match=ID):
        engine_detail(session, ID)
