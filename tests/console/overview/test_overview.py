"""The home page's facts: what is served, under way, and in need of somebody."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from built import ID, add_built
from counting import count_queries
from deployed import add_deployment, add_samples
from measured import add_benchmarks, add_evaluations
from sqlalchemy import update

from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import EngineReplica, IntegrityRecord, Job, Stage, Worker
from roundhouse.console.overview.queries import overview
from roundhouse.console.overview.records import AttentionItem, Overview

GIB = 2**30


def look(database: Database) -> Overview:
    with database.reading() as session:
        return overview(session)


def keys(database: Database) -> dict[str, AttentionItem]:
    return {item.key.partition("-")[0]: item for item in look(database).attention}


def job(**changes: Any) -> Job:
    fields: dict[str, Any] = {
        "kind": "build",
        "state": "queued",
        "subject": "qwen",
        "payload": {},
        "requested_by": "ann",
        "created_at": utc_now(),
    }
    if changes.get("state") == "running":
        fields |= {"lease_until": utc_now() + timedelta(minutes=1), "attempt": 1}
    if changes.get("state") in ("failed", "interrupted", "succeeded"):
        fields |= {"ended_at": utc_now()}
    return Job(**(fields | changes))


def worker(identity: str, **changes: Any) -> Worker:
    now = utc_now()
    fields: dict[str, Any] = {
        "host": identity,
        "home": "/srv/roundhouse",
        "pid": 1,
        "versions": {},
        "targets": ["torch"],
        "hardware": {},
        "disk_free": 500 * GIB,
        "disk_total": 900 * GIB,
        "started_at": now,
        "seen_at": now,
    }
    return Worker(id=identity, **(fields | changes))


def test_steps_are_ticked_off_as_they_are_done(database: Database) -> None:
    steps = look(database).first_steps
    assert (steps.has_planned, steps.has_engine, steps.are_done, steps.engine_id) == (False, False, False, None)
    with database.writing() as session:
        session.add(job())
    assert look(database).first_steps.has_planned
    with database.writing() as session:
        add_built(session)
    steps = look(database).first_steps
    assert (steps.has_engine, steps.are_done, steps.engine_id) == (True, False, ID)
    with database.writing() as session:
        add_deployment(session, engine_id=ID, state="stopped")
    assert look(database).first_steps.are_done


def test_what_is_served_tells_how_it_does(database: Database) -> None:
    with database.writing() as session:
        add_deployment(session, "aaaaaaaa", name="busy")
        add_samples(session, "aaaaaaaa")
        add_deployment(session, "bbbbbbbb", name="silent")
        add_samples(session, "bbbbbbbb", last=utc_now() - timedelta(minutes=1))
        add_deployment(session, "cccccccc", name="over", state="stopped")
    found = look(database)
    busy, silent = found.serving
    assert (busy.name, busy.tokens_per_s, busy.pages, busy.pages_taken, busy.mismatches) == ("busy", 40.0, 128, 31, 1)
    assert set(busy.history) == {40.0}
    assert (silent.tokens_per_s, silent.pages) == (None, None)
    assert (found.serving_count, found.integrity.well) == (2, False)


def test_work_runs_before_it_waits_and_builds_tell_what_is_to_come(database: Database) -> None:
    with database.writing() as session:
        session.add(job(subject="waits"))
        running = job(subject="runs", state="running")
        session.add_all([running, job(state="succeeded")])
        session.flush()
        for position, (name, end) in enumerate((("plan", utc_now()), ("load", None))):
            session.add(
                Stage(job_id=running.id, attempt=1, name=name, position=position, began_at=utc_now(), ended_at=end, what="x")
            )
        session.add(Stage(job_id=running.id, attempt=0, name="old", position=0, began_at=utc_now(), what="x"))
    found = look(database)
    assert [row.subject for row in found.work] == ["runs", "waits"]
    assert [(stage.name, stage.state) for stage in found.work[0].stages[:3]] == [
        ("plan", "done"), ("load", "running"), ("calibrate", "waiting"),
    ]  # fmt: skip
    assert (found.work[1].stages, found.work_count) == ((), 2)


def test_a_failed_job_needs_attention_until_it_was_done_again(database: Database) -> None:
    with database.writing() as session:
        session.add(job(state="failed", error="it broke"))
        session.add(job(state="interrupted", subject="old", ended_at=utc_now() - timedelta(days=8)))
        session.add(job(state="failed", kind="deploy", subject="chat"))
    (item,) = look(database).attention
    assert (item.what, item.detail, item.tone) == ("Building qwen failed", "it broke", "bad")
    with database.writing() as session:
        session.add(job())
    assert look(database).attention == ()


def test_a_job_that_measures_leads_to_what_it_measured(database: Database) -> None:
    with database.writing() as session:
        jobs = [
            job(state="interrupted", kind="benchmark", subject="a"),
            job(state="failed", kind="evaluate", subject="b"),
            job(state="failed", kind="benchmark", subject="c", error="no host has it"),
        ]
        session.add_all(jobs)
        session.flush()
        (run,) = add_benchmarks(session, state="interrupted", part=0.5, job_id=jobs[0].id)
        (evaluation,) = add_evaluations(session, state="failed", job_id=jobs[1].id)
        ids = [each.id for each in jobs]
    found = {item.key: (item.href, item.to_do) for item in look(database).attention}
    assert found == {
        f"job-{ids[0]}": (f"/benchmarks/{run}", "what was measured"),
        f"job-{ids[1]}": (f"/evaluations/{evaluation}", "what was scored"),
        f"job-{ids[2]}": (f"/builds/{ids[2]}", "log, retry"),
    }


def test_a_copy_that_was_found_damaged_is_told_once(database: Database) -> None:
    with database.writing() as session:
        add_built(session)
        session.add(job(kind="verify", state="failed", subject="tiny", engine_id=ID, host="one", home="/srv/roundhouse"))
    assert keys(database).keys() == {"job"}
    with database.writing() as session:
        session.execute(update(EngineReplica).values(state="damaged", problem="a file has changed"))
    assert {key: item.detail for key, item in keys(database).items()} == {"copy": "a file has changed"}


def test_deployments_that_ended_by_themselves_and_events_need_attention(database: Database) -> None:
    with database.writing() as session:
        add_deployment(session, "aaaaaaaa", name="chat", state="dead", reason="its processes are gone")
        for number, age in enumerate((timedelta(hours=1), timedelta(days=2))):
            fields: dict[str, Any] = {
                "host": "one",
                "home": "h",
                "engine_id": ID,
                "kind": "tag",
                "request_id": "r",
                "answer": 0,
            }
            fields |= {"step": 1, "column": 0, "expected_tag": 1, "last_holders": []}
            session.add(IntegrityRecord(at=utc_now() - age, event=str(number), **fields))
    found = keys(database)
    assert (found["deployment"].what, found["deployment"].href) == ("Deployment chat died", "/deployments/aaaaaaaa")
    assert found["integrity"].what.startswith("1 row was")


def test_a_deployment_of_which_nobody_tells_needs_attention(database: Database) -> None:
    with database.writing() as session:
        add_deployment(session, "aaaaaaaa", name="near")
        add_deployment(session, "bbbbbbbb", name="far", host="gone", seen_at=utc_now() - timedelta(minutes=5))
    found = look(database)
    assert [(row.name, row.silent) for row in found.serving] == [("far", True), ("near", False)]
    (item,) = found.attention
    assert (item.what, item.tone, item.href) == ("Deployment far is silent", "warn", "/deployments/bbbbbbbb")


def test_workers_that_are_gone_and_disks_that_are_full_need_attention(database: Database) -> None:
    long_ago = utc_now() - timedelta(hours=1)
    with database.writing() as session:
        session.add_all(
            [
                worker("fine"),
                worker("full", disk_free=5 * GIB),
                worker("small", disk_free=6 * GIB, disk_total=40 * GIB),
                worker("gone", seen_at=long_ago),
                worker("ended", seen_at=long_ago, ended_at=long_ago),
                worker("before", host="fine", seen_at=long_ago),  # another was started in its place
            ]
        )
    found = look(database)
    assert sorted(item.key for item in found.attention) == ["disk-full", "worker-gone"]
    assert {disk.host: disk.is_short for disk in found.hosts} == {"fine": False, "full": True, "small": False}


def test_more_rows_take_no_more_statements(database: Database) -> None:
    def statements() -> int:
        with database.reading() as session, count_queries(database) as seen:
            overview(session)
        return len(seen)

    few = statements()
    with database.writing() as session:
        for number in range(6):
            add_built(session, f"{number:016x}", f"e{number}")
            add_deployment(session, f"{number:08x}", engine_id=f"{number:016x}")
            add_samples(session, f"{number:08x}")
            session.add_all([job(state="running"), job(state="failed", subject=f"f{number}"), worker(f"w{number}")])
    assert statements() == few == 12 + database.is_sqlite  # which says BEGIN
