"""A job's stages as a line of time."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from building import add_job

from roundhouse.console.builds.stages import BUILD_STAGES, ShownStage, shown_stages
from roundhouse.console.database.database import Database
from roundhouse.console.jobs.queries import job_detail


def shown(database: Database, state: str, *stages: str, kind: str = "build", after: float | None = None) -> list[ShownStage]:
    job_id = add_job(database, state, stages=stages, kind=kind)
    with database.reading() as session:
        job = job_detail(session, job_id)
    now: datetime | None = job.stages[0].began_at + timedelta(seconds=after) if after is not None else None
    return shown_stages(job, now)


def test_a_running_build_has_been_is_and_will_be(database: Database) -> None:
    stages = shown(database, "running", "plan", "load", "calibrate", after=100)
    assert [stage.name for stage in stages] == list(BUILD_STAGES)
    assert [stage.state for stage in stages] == ["done", "done", "running", *["waiting"] * 5]
    assert [(stage.begins, stage.seconds) for stage in stages[:4]] == [(0, 30), (30, 30), (60, 40), (None, None)]
    assert stages[2].left == pytest.approx(40)  # half is done
    assert stages[0].left is None


def test_a_queued_build_shows_what_it_will_do_and_other_jobs_do_not(database: Database) -> None:
    assert [stage.state for stage in shown(database, "queued")] == ["waiting"] * len(BUILD_STAGES)
    assert shown(database, "queued", kind="verify") == []


def test_the_last_stage_of_a_job_that_ended_says_how(database: Database) -> None:
    for state, last in [
        ("succeeded", "done"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
        ("interrupted", "interrupted"),
    ]:
        assert [stage.state for stage in shown(database, state, "plan", "load")] == ["done", last]


def test_a_stage_that_only_some_builds_have_comes_before_the_others(database: Database) -> None:
    assert [stage.name for stage in shown(database, "running", "import")] == ["import", *BUILD_STAGES]
