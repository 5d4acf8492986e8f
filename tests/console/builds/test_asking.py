"""Asking for builds: what the plan refuses is not queued, and a job goes to a worker that may do it."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from building import BUILDER, MACHINE, READER, add_job, add_worker, make_model
from sqlalchemy import func, select

from roundhouse.build.home import Home
from roundhouse.build.recipe import Recipe, recipe_from
from roundhouse.console.builds.actions import ask_build, ask_cancel, ask_retry
from roundhouse.console.builds.placing import Placing, place
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.errors import ConflictError, ForbiddenError, NotFoundError
from roundhouse.console.jobs.waiting import why_waiting
from roundhouse.console.models import AuditEntry, Job, Worker
from roundhouse.console.models_allowed import AllowedModels
from roundhouse.errors import ModelError, PlanRefusedError, UsageError

KEY = "a key of this form"


@pytest.fixture
def models(tmp_path: Path) -> AllowedModels:
    make_model(tmp_path / "home" / "models" / "tiny")
    return AllowedModels((), Home(tmp_path / "home"))


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    return recipe_from({"model": str(tmp_path / "home" / "models" / "tiny"), "weights": "fp8"})


def ask(database: Database, models: AllowedModels, recipe: Recipe, key: str | None = None) -> Job:
    return ask_build(database, BUILDER, recipe, models, key)


def audited(database: Database) -> list[str]:
    with database.reading() as session:
        return list(session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)))


def test_a_build_is_queued_with_its_recipe_and_written_down(database: Database, models: AllowedModels, recipe: Recipe) -> None:
    add_worker(database)
    job = ask(database, models, recipe, KEY)
    assert (job.kind, job.state, job.subject, job.target) == ("build", "queued", "tiny-fp8-kv-fp8", "torch")
    assert (job.host, job.most_attempts, job.requested_by) == (None, 2, "ann")
    assert job.payload == {"recipe": {"model": recipe.model, "weights": "fp8"}}
    assert ask(database, models, recipe, KEY).id == job.id
    assert ask(database, models, recipe).id != job.id
    assert audited(database) == ["build", "build"]
    with pytest.raises(UsageError, match="another request"):
        ask(database, models, recipe.model_copy(update={"seed": 1, "name": "other"}), KEY)


def test_asking_again_needs_no_model_any_more(database: Database, models: AllowedModels, recipe: Recipe) -> None:
    job = ask(database, models, recipe, KEY)
    shutil.rmtree(recipe.model)
    assert ask(database, models, recipe, KEY).id == job.id
    with pytest.raises(ModelError):
        ask(database, models, recipe)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_others_write_while_a_build_is_planned(
    database: Database, models: AllowedModels, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = []

    def watched(*arguments: Any) -> Placing:
        other = sqlite3.connect(str(database.url.database), timeout=0, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.close()
        planned.append(place(*arguments))
        return planned[-1]

    monkeypatch.setattr("roundhouse.console.builds.actions.place", watched)
    ask(database, models, recipe)
    assert len(planned) == 1


def test_two_clicks_at_once_ask_for_one_build(database: Database, models: AllowedModels, recipe: Recipe) -> None:
    ready, found = threading.Barrier(4), list[int]()

    def click() -> None:
        ready.wait(30)
        found.append(ask(database, models, recipe, KEY).id)

    threads = [threading.Thread(target=click) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (len(found), len(set(found))) == (4, 1)


def test_what_cannot_be_built_is_not_queued(database: Database, models: AllowedModels, recipe: Recipe) -> None:
    refused: tuple[tuple[dict[str, object], type[Exception], str], ...] = (
        ({"weights": "nvfp4"}, PlanRefusedError, "no NVFP4 kernel"),
        ({"tensor_parallel": 2}, PlanRefusedError, "tensor_parallel"),
        ({"target": "tensorrt"}, PlanRefusedError, "needs an NVIDIA GPU"),
        ({"target": "tensorrt", "weights": "w4a8_awq"}, PlanRefusedError, "tensorrt: this version quantizes to"),
        ({"model": "shape:smollm2-135m"}, PlanRefusedError, "a shape has no weights"),
        ({"model": "/etc"}, UsageError, "not in a folder that may be read"),
        ({"calibration": {"text": "/etc/passwd"}}, UsageError, "not in a folder that may be read"),
        ({"model": "shape:none"}, ModelError, "no shape"),
    )
    for change, error, said in refused:
        wanted = recipe_from(recipe.model_dump(exclude_unset=True) | change)
        with pytest.raises(error, match=f"(?i){said}"):
            ask(database, models, wanted)
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Job)) == 0
    assert audited(database) == []


def test_viewers_ask_for_nothing(database: Database, models: AllowedModels, recipe: Recipe) -> None:
    job_id = add_job(database, "running")
    with pytest.raises(ForbiddenError):
        ask_build(database, READER, recipe, models)
    with database.writing() as session:
        for refused in (
            lambda: ask_cancel(session, READER, job_id),
            lambda: ask_retry(session, READER, job_id),
        ):
            with pytest.raises(ForbiddenError):
                refused()


def test_a_build_goes_to_the_host_that_has_room(database: Database, models: AllowedModels, recipe: Recipe) -> None:
    add_worker(database, "alpha", free_memory=2**20)
    with pytest.raises(PlanRefusedError, match="free memory"):
        ask(database, models, recipe)
    add_worker(database, "beta")
    add_worker(database, "gamma", targets=("tensorrt",))
    with database.reading() as session:
        placing = place(session, recipe, models)
    assert [(each.host, each.plan.legal) for each in placing.candidates] == [("alpha", False), ("beta", True)]
    assert placing.plan.hardware == MACHINE
    assert ask(database, models, recipe).host == "beta"


def test_a_build_for_a_gpu_goes_to_the_host_that_has_one(database: Database, models: AllowedModels, recipe: Recipe) -> None:
    add_worker(database, "alpha", targets=("torch", "tensorrt"))
    wanted = recipe_from(recipe.model_dump(exclude_unset=True) | {"target": "tensorrt"})
    with pytest.raises(PlanRefusedError, match="needs an NVIDIA GPU"):
        ask(database, models, wanted)
    add_worker(database, "beta", targets=("torch", "tensorrt"), gpu="H100-80-SXM")
    with database.reading() as session:
        placing = place(session, wanted, models)
    assert [(each.host, each.plan.hardware.name) for each in placing.candidates] == [("beta", "H100-80-SXM")]
    assert ask(database, models, wanted).target == "tensorrt"


def test_a_build_whose_host_went_away_says_that_a_new_one_goes_elsewhere(
    database: Database, models: AllowedModels, recipe: Recipe
) -> None:
    add_worker(database, "alpha", free_memory=2**20)
    beta, _ = add_worker(database, "beta"), add_worker(database, "gamma")
    job = ask(database, models, recipe)
    assert job.host == "beta"
    with database.writing() as session:
        session.get_one(Worker, beta).ended_at = utc_now()
    with database.reading() as session:
        waiting = why_waiting(session, job) or ""
    assert waiting.startswith("No worker with target torch of host beta is alive;")
    assert waiting.endswith(" A new build goes to a host that is alive and has room.")
    assert ask(database, models, recipe).host == "gamma"


def test_without_a_worker_only_memory_is_not_judged(
    database: Database, models: AllowedModels, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = MACHINE.model_copy(update={"free_memory": 2**20})
    monkeypatch.setattr("roundhouse.console.builds.placing.this_machine", lambda: small)
    assert ask(database, models, recipe).host is None
    with pytest.raises(PlanRefusedError):
        ask(database, models, recipe.model_copy(update={"weights": "nvfp4"}))
    worker = add_worker(database, "gone", free_memory=2**20)
    with database.writing() as session:
        gone = session.get(Worker, worker)
        assert gone is not None
        gone.ended_at = utc_now()
    assert ask(database, models, recipe).host is None


def test_cancel_and_try_again(database: Database) -> None:
    queued, running, done = add_job(database, "queued"), add_job(database, "running"), add_job(database, "succeeded")
    with database.writing() as session:
        for _ in range(2):
            assert ask_cancel(session, BUILDER, queued).state == "cancelled"
        for _ in range(2):
            job = ask_cancel(session, BUILDER, running)
            assert (job.state, job.cancel_requested_at is not None) == ("running", True)
        for _ in range(2):
            assert ask_retry(session, BUILDER, queued).state == "queued"
        assert ask_retry(session, BUILDER, running).state == "running"
        for refused in (lambda: ask_cancel(session, BUILDER, done), lambda: ask_retry(session, BUILDER, done)):
            with pytest.raises(ConflictError):
                refused()
        with pytest.raises(NotFoundError):
            ask_cancel(session, BUILDER, 99_999)
    assert audited(database) == ["job.cancel", "job.cancel", "job.retry"]
