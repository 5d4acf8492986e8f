"""Drills: what may be asked for, and that a report is read as the drill itself reads it."""

from __future__ import annotations

from typing import Any

import pytest
from built import ID, add_built
from pydantic import ValidationError
from sqlalchemy import select, update

from roundhouse.console.access.actor import Actor
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.drills.actions import ask_drill
from roundhouse.console.drills.queries import drill_detail, engines_to_drill, list_drills
from roundhouse.console.drills.records import DrillReportRow, DrillWish, ReportFailure
from roundhouse.console.errors import ConflictError, NotFoundError
from roundhouse.console.models import AuditEntry, EngineReplica, Job, Worker
from roundhouse.console.paging import PageOf
from roundhouse.serve.drill.choices import kinds_of, levels_of
from roundhouse.serve.drill.drill import cases_of
from roundhouse.serve.drill.kinds import KINDS
from roundhouse.serve.drill.levels import Level
from roundhouse.serve.drill.report import DrillReport, Failure, KindReport, report_as_json
from roundhouse.serve.drill.view import drill_table, replay_command

ANN = Actor(1, "ann", "operator", "browser", "127.0.0.1")


def kind(fault: Any, level: Level, **counts: Any) -> KindReport:
    probability = 1.0 if fault is None else level.probability(KINDS[fault])
    sample = level.share if level.guard == "tags+content" else None
    fields: dict[str, Any] = {"injected": 5, "effective": 4, "detected": 4} | counts
    return KindReport(fault=fault, guard=level.guard, guard_sample=sample, probability=probability, **fields)


def report(passed: bool = True, failures: list[Failure] | None = None) -> DrillReport:
    whole, sampled = Level("tags+content"), Level("tags+content", 0.02)
    kinds = [
        kind(None, Level("tags")),
        kind("freed_early", Level("tags")),
        kind("freed_early", Level("tags"), detected=3, wrong_rows_run=1),
        kind("late_write", Level("tags"), detected=0, leaked_tokens=9),
        kind("late_write", whole),
        kind("late_write", sampled, detected=1),
        kind("late_write", sampled, effective=2000, detected=60),
        kind("stale_tail", Level("tags"), effective=0, detected=0),
        kind("freed_early", Level("off"), detected=0),
    ]
    return DrillReport(
        seed=7, engine=ID, steps=100, grants=1000, faults=45, preemptions=1, cached_tokens=2, passed=passed, kinds=kinds,
        failures=failures or [],
    )  # fmt: skip


def test_rows_are_judged_as_the_drill_judges_them() -> None:
    ours = DrillReportRow.model_validate(report_as_json(report()))
    theirs = list(drill_table(report()).columns[-1].cells)
    words = {"FAILED": "failed", "not tried": "not tried: no fault hit anybody", "nobody looks": "nobody looks at this level",
             "not seen by tags": "not seen by tags, as is known"}  # fmt: skip
    assert [each.verdict for each in ours.kinds] == [words.get(str(cell), str(cell)) for cell in theirs]
    assert [each.level for each in ours.kinds] == list(drill_table(report()).columns[1].cells)


@pytest.mark.parametrize("sample", [None, 1.0, 0.02])
def test_a_failure_is_played_again_with_the_drills_own_command(sample: float | None) -> None:
    failure = Failure(fault="late_write", guard="tags+content", guard_sample=sample, seed=9, steps=1, why="late")
    ours = ReportFailure.model_validate(report_as_json(report(False, [failure]))["failures"][0])
    for engine in (ID, None):
        assert ours.command(engine) == replay_command(failure, engine)


@pytest.mark.parametrize(
    "wrong",
    [
        {"faults": ("nothing",)},
        {"faults": ()},
        {"guards": ("loud",)},
        {"guards": ()},
        {"seed": -1},
        {"seed": 2**31},
        {"steps": 0},
    ],
)
def test_what_cannot_be_played_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DrillWish(**wrong)


def test_a_kind_that_is_named_twice_is_played_once() -> None:
    wish = DrillWish(faults=("late_write", "none", "late_write"), guards=("tags", "tags"))
    assert (wish.faults, wish.guards) == (("late_write", "none"), ("tags",))


@pytest.mark.parametrize("guards", [None, ("tags",), ("off", "tags", "tags+content")])
@pytest.mark.parametrize("faults", [None, ("none",), ("late_write", "grant_replaced", "freed_early")])
@pytest.mark.parametrize(("engine", "most"), [(None, 1_000_000), (ID, 20_000)])
def test_no_drill_keeps_builds_waiting_for_days(engine: str | None, most: int, faults: Any, guards: Any) -> None:
    cases = len(cases_of(levels_of(guards, None), kinds_of(faults)))
    fitting = most // cases
    assert DrillWish(engine_id=engine, steps=fitting, faults=faults, guards=guards).steps == fitting
    if fitting < most:
        told = (
            f"{fitting + 1:,} steps of each of {cases} cases .kinds at levels. are {(fitting + 1) * cases:,}.* {most:,} at most"
        )
        with pytest.raises(ValidationError, match=told) as caught:
            DrillWish(engine_id=engine, steps=fitting + 1, faults=faults, guards=guards)
        assert [error["loc"] for error in caught.value.errors()] == [("steps",)]


def test_a_drill_is_asked_for_once_and_goes_where_its_engine_is(database: Database) -> None:
    wish = DrillWish(engine_id=ID, seed=7, faults=("late_write", "none"))
    now = utc_now()
    with database.writing() as session:
        add_built(session)
        add_built(session, host="two")
        session.add(
            Worker(id="w", host="two", home="/srv/roundhouse", pid=1, versions={}, targets=["torch"], hardware={}, disk_free=1,
                   disk_total=1, started_at=now, seen_at=now)
        )  # fmt: skip
        job = ask_drill(session, ANN, wish, key="k")
        assert ask_drill(session, ANN, wish, key="k") is job
        assert (job.host, job.subject, job.engine_id) == ("two", "tiny", ID)  # where a worker lives
        assert job.payload == {"engine_id": ID, "seed": 7, "steps": None, "faults": ["late_write", "none"], "guards": None}
        assert ask_drill(session, ANN, DrillWish()).host is None
        assert [entry.action for entry in session.scalars(select(AuditEntry))] == ["drill", "drill"]


def test_an_engine_must_be_somewhere_whole(database: Database) -> None:
    with database.writing() as session:
        with pytest.raises(NotFoundError):
            ask_drill(session, ANN, DrillWish(engine_id=ID))
        add_built(session)
        assert engines_to_drill(session) == [(ID, "tiny")]
        session.execute(update(EngineReplica).values(state="damaged", problem="gone"))
        assert engines_to_drill(session) == []
        with pytest.raises(ConflictError, match="tiny"):
            ask_drill(session, ANN, DrillWish(engine_id=ID))


def test_drills_are_listed_with_what_came_of_them(database: Database) -> None:
    with database.writing() as session:
        running = ask_drill(session, ANN, DrillWish(seed=3)).id
        failed = ask_drill(session, ANN, DrillWish(steps=50, faults=("late_write",), guards=("tags",))).id
        why = Failure(fault="late_write", guard="tags", guard_sample=None, seed=9, steps=1, why="late")
        session.get_one(Job, failed).result = report_as_json(report(False, [why]))
        session.add(Job(kind="build", state="queued", subject="x", payload={}, requested_by="ann", created_at=utc_now()))
    with database.reading() as session:
        rows = list_drills(session, PageOf()).items
        assert [(row.id, row.passed, row.faults, row.seed) for row in rows] == [
            (failed, False, 45, 7),
            (running, None, None, 3),
        ]
        found = drill_detail(session, failed)
        assert found.command == "roundhouse drill --seed 7 --steps 50 --fault late_write --guard tags"
        assert found.sentence is not None
        assert "1 time a level did not" in found.sentence
        assert drill_detail(session, running).report is None
        with pytest.raises(NotFoundError):
            drill_detail(session, failed + 1)
