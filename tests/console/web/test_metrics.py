"""What Prometheus reads."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from browsing import BrowserMaker
from counting import count_queries
from deployed import add_deployment, add_engine
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select

from roundhouse.console.access.tokens import add_token
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.jobs import NewJob, enqueue
from roundhouse.console.models import DeploymentSample, IntegrityRecord, User, Worker
from roundhouse.console.observed import observe
from roundhouse.console.web import metrics

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


def values(text: str) -> Values:
    families = text_string_to_metric_families(text)
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


def named(name: str, /, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def fill(database: Database, times: int = 1) -> None:
    now = utc_now()
    with database.writing() as session:
        for number in range(times):
            enqueue(session, NewJob("build", "x"))
            add_engine(session, f"{number:016x}", host=f"gpu-{number}")
            identity = f"{number:08x}"
            add_deployment(session, identity, engine_id=f"{number:016x}", name=f"chat-{number}")
            for age, mismatches in ((2, 1), (1, 3)):
                session.add(
                    DeploymentSample(
                        deployment_id=identity, at=now - timedelta(seconds=age), values={"tag_mismatches": mismatches}
                    )
                )
            session.add(
                IntegrityRecord(
                    at=now, host="gpu", home="/h", engine_id="e", deployment_id=None, event=f"event-{number}", kind="tag",
                    request_id="r", answer=0, step=1, column=0, page=1, expected_tag=1, found_tag=2, last_holders=[],
                )
            )  # fmt: skip
        session.add(
            Worker(id="gone", host="gpu-gone", home="/h", pid=1, versions={}, targets=[], hardware={}, disk_free=1,
                   disk_total=2, started_at=now, seen_at=now - timedelta(minutes=5))
        )  # fmt: skip


def test_a_token_of_a_viewer_reads_what_the_database_knows(browser: BrowserMaker, database: Database) -> None:
    browser("viewer")
    fill(database)
    with database.writing() as session:
        add_deployment(session, "silent", engine_id=f"{0:016x}", seen_at=utc_now() - timedelta(minutes=5))
        add_deployment(session, "stopped", engine_id=f"{0:016x}", state="stopped", seen_at=utc_now() - timedelta(minutes=5))
        owner = session.scalars(select(User)).one()
        _, secret = add_token(session, owner.id, "prometheus", ["read"], None)
    assert browser().get("/metrics", follow_redirects=False).status_code == 303
    answer = browser().get("/metrics", headers={"authorization": f"Bearer {secret}"})
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found = values(answer.text)
    assert found[named("roundhouse_jobs", kind="build", state="queued")] == 1
    assert found[named("roundhouse_workers", state="alive")] == 1
    assert found[named("roundhouse_workers", state="gone")] == 1
    assert found[named("roundhouse_deployments", state="ready")] == 1
    assert found[named("roundhouse_deployments", state="silent")] == 1
    assert found[named("roundhouse_integrity_events", kind="tag")] == 1
    assert found[named("roundhouse_deployment_tag_mismatches", deployment="00000000", name="chat-0")] == 3
    assert found[named("roundhouse_disk_free_bytes", host="gpu-0", home="/srv/roundhouse")] == 2**40
    assert named("roundhouse_disk_free_bytes", host="gpu-gone", home="/h") not in found


def test_requests_are_counted_by_route_whatever_their_paths(browser: BrowserMaker) -> None:
    admin = browser("admin")
    for path in ("/users/a", "/users/b", "/nowhere/1", "/nowhere/2", "/static/x"):
        admin.get(path)
    admin.request("BREW", "/")
    found = values(admin.get("/metrics").text)

    def count(**labels: str) -> float | None:
        return found.get(named("roundhouse_console_requests_total", **labels))

    assert count(method="GET", route="/users/{name}", status="404") == 2
    assert count(method="GET", route="other", status="404") == 2
    assert count(method="GET", route="/static", status="404") == 1
    assert count(method="POST", route="/login", status="303") == 1
    assert count(method="other", route="other", status="403") == 1
    assert found[named("roundhouse_console_request_seconds_count", method="GET", route="/users/{name}")] == 2
    assert not any("nowhere" in value for _, labels in found for _, value in labels)


def test_reading_takes_as_many_statements_whatever_there_is(database: Database) -> None:
    fill(database, times=8)
    with count_queries(database) as sent, database.reading() as session:
        families = list(observe(session).collect())
    assert len([statement for statement in sent if statement != "BEGIN"]) == 5
    assert sum(len(family.samples) for family in families) > 20


def test_every_name_is_in_the_description(browser: BrowserMaker, database: Database) -> None:
    viewer = browser("viewer")
    fill(database)
    families = text_string_to_metric_families(viewer.get("/metrics").text)
    names = {family.name for family in families if family.samples}
    assert len(names) == 9
    page = (Path(__file__).parents[3] / "docs" / "console-access.md").read_text()
    assert {name for name in names if f"``{name}" not in str(metrics.__doc__) or f"`{name}" not in page} == set()
