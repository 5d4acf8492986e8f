"""Builds as jobs, in real processes: an engine comes whole or not at all, whoever is killed or changes their mind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from roundhouse.build.store import EngineStore
from roundhouse.console.models import EngineRecord, EngineReplica

from .conftest import Bench, eventually

STAGES = ["plan", "load", "calibrate", "quantize", "verify", "measure", "compile", "publish"]
EVERY_STAGE = os.environ.get("ROUNDHOUSE_TEST_EVERY_STAGE") == "1"
"""A build is a process that imports much: going through all of its stages takes many minutes."""

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

ModelMaker = Callable[[str], Path]


def ask(bench: Bench, model: ModelMaker, **keys: object) -> int:
    recipe = {"model": str(model("llama")), "max_batch_size": 2, "max_seq_len": 64, "calibration": {"samples": 1}, **keys}
    return bench.ask("build", payload={"recipe": recipe}, target="torch", most_attempts=2)


def test_a_build_succeeds_with_stages_a_log_and_rows(bench: Bench, tiny_model: ModelMaker) -> None:
    bench.start(model_folders=(tiny_model("llama").parent,))
    job = bench.ended(ask(bench, tiny_model, name="mine"))
    assert (job.state, job.error, job.most_attempts, job.target) == ("succeeded", None, 2, "torch")
    assert [stage.name for stage in job.stages] == STAGES
    assert all(stage.ended_at for stage in job.stages)
    assert next(stage.result for stage in job.stages if stage.name == "verify").endswith("KV scales calibrated")
    log = bench.log(job.id)
    assert [line.partition(":")[0] for line in log if line.endswith(" s)")] == STAGES
    assert job.result == {"engine_id": job.engine_id, "new": True}
    engine = EngineStore(bench.home).find("mine")
    assert engine.manifest.id == job.engine_id
    with bench.database.reading() as session:
        record, replica = session.scalars(select(EngineRecord)).one(), session.scalars(select(EngineReplica)).one()
        assert (record.id, record.name, record.total_bytes) == (job.engine_id, "mine", engine.total_bytes)
        assert (replica.engine_id, replica.host, replica.state) == (job.engine_id, "here", "present")


def test_what_may_not_be_read_is_not_built(bench: Bench, tiny_model: ModelMaker) -> None:
    bench.start()
    job = bench.ended(ask(bench, tiny_model))
    assert (job.state, job.stages) == ("failed", ())
    assert "is not in a folder that may be read here" in str(job.error)


@pytest.mark.parametrize("stage", STAGES if EVERY_STAGE else ["load"])
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


@pytest.mark.parametrize("stage", STAGES if EVERY_STAGE else ["plan", "calibrate"])
def test_a_build_can_be_cancelled_at_every_stage(bench: Bench, tiny_model: ModelMaker, stage: str) -> None:
    bench.start(model_folders=(tiny_model("llama").parent,), pause_at=stage, lease_s=3.0)
    job = ask(bench, tiny_model)
    bench.at_stage(job, stage)
    bench.cancel(job)
    assert bench.ended(job).state == "cancelled"
    assert (bench.children(), bench.leftovers(), list(EngineStore(bench.home))) == ([], [], [])
