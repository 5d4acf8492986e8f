"""Workers: which are there, what they can run, and what they do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from browsing import BrowserMaker
from counting import count_queries

from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.jobs import NewJob, Worklist, enqueue
from roundhouse.console.models import Worker


def worker(name: str, seen_s: float = 0.0, **more: Any) -> Worker:
    now = utc_now()
    values: dict[str, Any] = {
        "host": f"host-of-{name}",
        "pid": 7,
        "home": "/home",
        "hardware": {"name": "NVIDIA H200", "kind": "gpu", "total_memory": 2**37},
        "versions": {"roundhouse": "1.2.3"},
        "targets": ["torch"],
        "disk_free": 2**30,
        "disk_total": 2**40,
        "started_at": now - timedelta(hours=1),
        "seen_at": now - timedelta(seconds=seen_s),
        "ended_at": None,
    }
    return Worker(id=name, **(values | more))


def add(database: Database, *workers: Worker) -> None:
    with database.writing() as session:
        session.add_all(workers)


def test_a_worker_is_alive_gone_or_ended(browser: BrowserMaker, database: Database) -> None:
    add(database, worker("a"), worker("b", seen_s=31), worker("c", ended_at=utc_now()), worker("d", seen_s=25))
    viewer = browser("viewer")
    listed = viewer.get("/api/v1/workers").json()["items"]
    assert {each["id"]: each["state"] for each in listed} == {"a": "alive", "b": "gone", "c": "ended", "d": "alive"}
    assert [each["id"] for each in listed][:2] == ["a", "d"], "those that are there come first"
    for state, names in (("alive", {"a", "d"}), ("gone", {"b"}), ("ended", {"c"})):
        assert {each["id"] for each in viewer.get(f"/api/v1/workers?state={state}").json()["items"]} == names
    assert [each["id"] for each in viewer.get("/api/v1/workers?host=host-of-b").json()["items"]] == ["b"]
    assert "No worker fits this." in viewer.get("/workers?host=nowhere").text


def test_a_worker_shows_the_job_it_has_and_those_it_had(browser: BrowserMaker, database: Database) -> None:
    add(database, worker("a"))
    worklist = Worklist(database)
    with database.writing() as session:
        enqueue(session, NewJob("build", "the first"))
        enqueue(session, NewJob("build", "the second"))
    first = worklist.claim(worker("a"))
    assert first is not None
    worklist.end(first, "succeeded")
    assert worklist.claim(worker("a")) is not None
    viewer = browser("viewer")
    told = viewer.get("/api/v1/workers/a").json()
    assert [job["subject"] for job in told["jobs"]] == ["the second"]
    assert [(job["subject"], job["state"]) for job in told["had"]] == [("the first", "succeeded")]
    assert "the second" in viewer.get("/workers").text
    page = viewer.get("/workers/a").text
    assert "the first" in page
    assert "1.2.3" in page


def test_a_page_takes_as_many_statements_whatever_is_on_it(browser: BrowserMaker, database: Database) -> None:
    viewer = browser("viewer")
    add(database, *(worker(f"w{number}") for number in range(40)))
    with count_queries(database) as few:
        viewer.get("/workers?size=1")
    with count_queries(database) as many:
        viewer.get("/workers?size=50")
    assert len(few) == len(many)


def test_where_there_is_none_the_page_says_how_to_start_one(browser: BrowserMaker) -> None:
    viewer = browser("viewer")
    assert "roundhouse worker --database" in viewer.get("/workers").text
    assert viewer.get("/workers/nobody").status_code == 404


def test_the_list_follows_by_itself_with_its_filters(browser: BrowserMaker, database: Database) -> None:
    add(database, worker("a"), worker("b", seen_s=99))
    viewer = browser("viewer")
    assert 'hx-get="/workers/list?state=gone"' in viewer.get("/workers?state=gone").text
    part = viewer.get("/workers/list?state=gone").text
    assert "host-of-b" in part
    assert "host-of-a" not in part
    assert "<html" not in part


def test_hardware_that_says_little_is_shown_all_the_same(browser: BrowserMaker, database: Database) -> None:
    add(database, worker("a", hardware={}, versions={}, targets=[], disk_total=0, disk_free=0))
    viewer = browser("viewer")
    assert viewer.get("/workers").status_code == 200
    assert "It can run nothing." in viewer.get("/workers/a").text
