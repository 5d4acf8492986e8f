"""Builds as jobs: an engine and its rows come together or not at all, whoever is killed or changes their mind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from roundhouse.build.store import EngineStore
from roundhouse.console.builds.new_build import build_job
from roundhouse.console.database.base import utc_now
from roundhouse.console.jobs import Worklist, enqueue
from roundhouse.console.models import EngineRecord, EngineReplica

from .conftest import Bench, eventually

STAGES = ["plan", "load", "calibrate", "quantize", "verify", "measure", "compile", "publish"]
EVERY_STAGE = os.environ.get("ROUNDHOUSE_TEST_EVERY_STAGE") == "1"
"""A build takes ten seconds and more: each stage of it takes minutes, and seldom tells more than the first and the last."""

on_sqlite = pytest.mark.parametrize("empty_database", ["sqlite"], indirect=True)

ModelMaker = Callable[[str], Path]


def ask(bench: Bench, model: ModelMaker, **keys: object) -> int:
    recipe = {"model": str(model("llama")), "max_batch_size": 2, "max_seq_len": 64, "calibration": {"samples": 1}, **keys}
    with bench.database.writing() as session:
        return enqueue(session, build_job(recipe, requested_by="ann")).id


def test_a_build_succeeds_with_stages_a_log_and_rows(bench: Bench, tiny_model: ModelMaker) -> None:
    bench.start(model_folders=(tiny_model("llama").parent,))
    job = bench.ended(ask(bench, tiny_model, name="mine"))
    assert (job.state, job.error, job.most_attempts, job.target) == ("succeeded", None, 2, "torch")
    assert [stage.name for stage in job.stages] == STAGES
    assert all(stage.ended_at for stage in job.stages)
    log = bench.log(job.id)
    assert [line.partition(":")[0] for line in log if line.endswith(" s)")] == STAGES
    assert job.result == {"engine_id": job.engine_id, "new": True}
    engine = EngineStore(bench.home).find("mine")
    assert engine.manifest.id == job.engine_id
    with bench.database.reading() as session:
        record, replica = session.scalars(select(EngineRecord)).one(), session.scalars(select(EngineReplica)).one()
        assert (record.id, record.name, record.total_bytes) == (job.engine_id, "mine", engine.total_bytes)
        assert (replica.engine_id, replica.host, replica.state) == (job.engine_id, "here", "present")
    again = bench.ended(ask(bench, tiny_model, name="mine"))
    assert again.result == {"engine_id": job.engine_id, "new": False}


@on_sqlite
def test_what_may_not_be_read_is_not_built(bench: Bench, tiny_model: ModelMaker) -> None:
    bench.start()
    job = bench.ended(ask(bench, tiny_model))
    assert (job.state, job.stages) == ("failed", ())
    assert "is not in a folder that may be read here" in str(job.error)


@on_sqlite
@pytest.mark.parametrize("stage", STAGES if EVERY_STAGE else ["load", "publish"])
def test_killing_a_worker_leaves_nothing_and_the_job_is_tried_again_once(
    bench: Bench, tiny_model: ModelMaker, stage: str
) -> None:
    keys = {"model_folders": [str(tiny_model("llama").parent)], "pause_at": stage, "lease_s": 3.0}
    workers = [bench.start_process(**keys)]
    job = ask(bench, tiny_model)
    for attempt in (1, 2):
        bench.at_stage(job, stage, attempt)
        assert bench.children()
        workers[-1].kill()
        workers[-1].wait()
        eventually(lambda: not bench.children())
        assert bench.look(job).state == "running"  # nobody knows yet
        workers.append(bench.start_process(**keys))
        if attempt == 1:
            assert bench.ended(job, "queued", "running")
            eventually(lambda: bench.look(job).attempt == 2)
    over = bench.ended(job)
    assert (over.state, over.error, over.attempt) == ("interrupted", "its worker went away", 2)
    eventually(lambda: not bench.leftovers())
    assert list(EngineStore(bench.home)) == []


@on_sqlite
@pytest.mark.parametrize("stage", STAGES if EVERY_STAGE else ["plan", "quantize"])
def test_a_build_can_be_cancelled_at_every_stage(bench: Bench, tiny_model: ModelMaker, stage: str) -> None:
    bench.start(model_folders=(tiny_model("llama").parent,), pause_at=stage, lease_s=3.0)
    job = ask(bench, tiny_model)
    bench.at_stage(job, stage)
    bench.cancel(job)
    assert bench.ended(job).state == "cancelled"
    assert (bench.children(), bench.leftovers(), list(EngineStore(bench.home))) == ([], [], [])


@on_sqlite
def test_a_build_that_lost_its_lease_moves_no_engine_to_its_place(bench: Bench, tiny_model: ModelMaker) -> None:
    """Its worker sleeps, and it builds on to the end: there it is not let in."""
    sleeper = bench.start_process(model_folders=[str(tiny_model("llama").parent)], pause_at=None, lease_s=2.0)
    job = ask(bench, tiny_model)
    bench.at_stage(job, "plan")
    os.kill(sleeper.pid, signal.SIGSTOP)
    Worklist(bench.database, lambda: utc_now() + timedelta(seconds=3)).give_up_abandoned()
    assert bench.look(job).state == "queued"
    eventually(lambda: len(bench.children()) < 2)  # the tether stays where its owner is
    assert (bench.leftovers(), list(EngineStore(bench.home))) == ([], [])
    with bench.database.reading() as session:
        assert session.scalars(select(EngineRecord)).all() == []
    bench.cancel(job)
    os.kill(sleeper.pid, signal.SIGCONT)
    eventually(lambda: not bench.children())
