"""What build, verify, remove and drill do, without the process around them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import HOST, Desk
from sqlalchemy import select

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.build.store import EngineStore
from roundhouse.console.database.base import utc_now
from roundhouse.console.engines.recording import record_engine
from roundhouse.console.jobs import LeaseLostError, Worklist
from roundhouse.console.models import Deployment, EngineRecord, Job
from roundhouse.console.models_allowed import AllowedModels
from roundhouse.console.worker.kinds import run_kind
from roundhouse.console.worker.task import Task, TaskFailedError, TaskStoppedError
from roundhouse.console.worker.wire import Progress, StageBegan
from roundhouse.errors import EngineError, UsageError


@pytest.fixture
def engine(desk: Desk, tiny_engine: Engine) -> Engine:
    """A copy of an engine in this desk's home, known to the database."""
    folder = desk.home.engines / tiny_engine.manifest.id
    shutil.copytree(tiny_engine.folder, folder)
    engine = Engine.open(folder)
    with desk.database.writing() as session:
        record_engine(session, engine, HOST, desk.home)
    return engine


def a_build(desk: Desk, model: Path, **keys: Any) -> Task:
    recipe = {"model": str(model), "max_batch_size": 2, "max_seq_len": 64, "calibration": {"samples": 1}, **keys}
    task = desk.task("build", recipe=recipe)
    task.models = AllowedModels([model.parent], desk.home)
    return task


def test_a_build_writes_engine_and_rows_at_once(desk: Desk, tiny_model: Callable[[str], Path]) -> None:
    task = a_build(desk, tiny_model("llama"), name="mine")
    result = run_kind(task)
    assert result == {"engine_id": EngineStore(desk.home).find("mine").manifest.id, "new": True}
    replica = desk.replica()
    assert replica is not None
    assert (replica.engine_id, replica.host, replica.state) == (result["engine_id"], HOST, "present")
    with desk.database.reading() as session:
        assert session.get_one(Job, task.claim.job_id).engine_id == result["engine_id"]
    again = a_build(desk, tiny_model("llama"), name="mine")
    assert run_kind(again) == {**result, "new": False}
    with desk.database.reading() as session:
        assert session.get_one(Job, again.claim.job_id).engine_id == result["engine_id"]
    for each in (task, again):
        each.close()


def test_a_build_that_lost_its_lease_moves_no_engine_to_its_place(
    desk: Desk, tiny_model: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = a_build(desk, tiny_model("llama"))
    begin = task.begin_stage

    def lose_it_at_the_last_stage(name: str, what: str) -> None:
        begin(name, what)
        if name == "publish":
            later = Worklist(desk.database, lambda: utc_now() + timedelta(minutes=1))
            assert later.give_up_abandoned() == [task.claim.job_id]

    monkeypatch.setattr(task, "begin_stage", lose_it_at_the_last_stage)
    with pytest.raises(LeaseLostError):
        run_kind(task)
    task.close()
    assert [each for each in desk.home.engines.glob("*") if each.name[0] != "."] == []
    assert [each for each in desk.home.engines.glob(".building/*") if each.is_dir()] == []
    with desk.database.reading() as session:
        assert session.scalars(select(EngineRecord)).all() == []


def test_verify_writes_down_that_all_is_well(desk: Desk, engine: Engine) -> None:
    result = desk.run("verify", engine_id=engine.manifest.id)
    assert result == {"engine_id": engine.manifest.id, "files": len(engine.manifest.files), "bytes": engine.total_bytes}
    replica = desk.replica()
    assert replica is not None
    assert (replica.state, replica.problem, replica.verified_at is not None) == ("present", None, True)
    assert [event.name for event in desk.events if isinstance(event, StageBegan)] == ["open", "hash"]
    assert [event.done for event in desk.events if isinstance(event, Progress)][-1] == 1.0


def test_verify_finds_a_flipped_bit_and_says_where(desk: Desk, engine: Engine) -> None:
    desk.run("verify", engine_id=engine.manifest.id)
    path = next(engine.checkpoint.glob("*.safetensors"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(EngineError, match="has changed"):
        desk.run("verify", engine_id=engine.manifest.id)
    replica = desk.replica()
    assert replica is not None
    assert replica.state == "damaged"
    assert f"checkpoint/{path.name} has changed" in str(replica.problem)


@pytest.mark.parametrize("stage", ["open", "hash"])
def test_work_that_is_asked_to_end_does(desk: Desk, engine: Engine, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = desk.task("verify", engine_id=engine.manifest.id)
    begin = task.begin_stage

    def asked_meanwhile(name: str, what: str) -> None:
        begin(name, what)
        if name == stage:
            task.stopping.set()

    monkeypatch.setattr(task, "begin_stage", asked_meanwhile)
    with pytest.raises(TaskStoppedError):
        run_kind(task)
    task.close()
    replica = desk.replica()
    assert replica is not None
    assert (replica.state, replica.verified_at) == ("present", None)
    assert [event for event in desk.events if isinstance(event, Progress)] == []


def test_remove_deletes_files_and_replica_but_not_what_is_known(desk: Desk, engine: Engine) -> None:
    result = desk.run("remove", engine_id=engine.manifest.id)
    assert result["bytes"] >= engine.total_bytes
    assert (engine.folder.exists(), desk.replica()) == (False, None)
    assert not list((desk.home.engines / ".removed").glob("*"))
    with desk.database.reading() as session:
        assert session.get(EngineRecord, engine.manifest.id) is not None
    with pytest.raises(EngineError, match="is not in"):
        desk.run("remove", engine_id=engine.manifest.id)


def test_a_link_in_an_engines_place_is_no_engine_and_only_the_link_goes(desk: Desk, engine: Engine, tmp_path: Path) -> None:
    engine.folder.rename(tmp_path / "elsewhere")
    engine.folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EngineError, match="is a link"):
        desk.run("verify", engine_id=engine.manifest.id)
    replica = desk.replica()
    assert replica is not None
    assert replica.state == "damaged"
    assert desk.run("remove", engine_id=engine.manifest.id) == {"engine_id": engine.manifest.id, "bytes": 0}
    assert not engine.folder.is_symlink()
    assert not list((desk.home.engines / ".removed").glob("*"))
    assert Engine.open(tmp_path / "elsewhere").manifest.id == engine.manifest.id


def test_remove_refuses_what_runs_or_is_deployed(desk: Desk, engine: Engine) -> None:
    with engine.held(), pytest.raises(UsageError, match="is running"):
        desk.run("remove", engine_id=engine.manifest.id)
    now = utc_now()
    with desk.database.writing() as session:
        session.add(
            Deployment(
                id="d",
                name="chat",
                engine_id=engine.manifest.id,
                kind="local",
                host=HOST,
                home=str(desk.home.path),
                settings={},
                state="starting",
                created_by="ann",
                created_at=now,
                changed_at=now,
            )
        )
    with pytest.raises(UsageError, match="is deployed here: chat"):
        desk.run("remove", engine_id=engine.manifest.id)
    assert engine.folder.exists()
    assert desk.replica() is not None
    with desk.database.writing() as session:
        session.get_one(Deployment, "d").state = "stopped"
    desk.run("remove", engine_id=engine.manifest.id)


@pytest.mark.parametrize("engine_id", ["../engines", "", ".building", "0" * 16])
@pytest.mark.parametrize("kind", ["verify", "remove"])
def test_an_engine_that_is_none_is_refused(desk: Desk, kind: str, engine_id: str) -> None:
    (desk.home.engines / ".building").mkdir(parents=True)
    with pytest.raises(EngineError):
        desk.run(kind, engine_id=engine_id)
    assert (desk.home.engines / ".building").is_dir()


def test_a_drill_answers_its_report(desk: Desk, session_home: Home) -> None:
    (desk.home.cache).mkdir(parents=True)
    (desk.home.cache / "native").symlink_to(session_home.kernels)  # compiled once for all tests
    session_home.kernels.mkdir(parents=True, exist_ok=True)
    report = desk.run("drill", engine_id=None, seed=4, steps=1, faults=["none", "freed_early"], guards=["tags"])
    assert (report["format"], report["seed"], report["passed"]) == ("roundhouse.drill/1", 4, True)
    assert [(kind["fault"], kind["guard"], kind["passed"]) for kind in report["kinds"]] == [
        (None, "tags", True),
        ("freed_early", "tags", True),
    ]
    assert [event.done for event in desk.events if isinstance(event, Progress)] == [0.0, 0.5]
    assert desk.lines[0] == "case 1 of 2: no faults at tags"
    with pytest.raises(UsageError, match="gremlin"):
        desk.run("drill", faults=["gremlin"])


def test_a_drill_that_fails_is_a_failed_job_with_a_report(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from roundhouse.serve.drill import play
    from roundhouse.serve.drill.report import DrillReport

    empty = {"steps": 1, "grants": 1, "faults": 1, "preemptions": 0, "cached_tokens": 0, "kinds": [], "failures": []}
    monkeypatch.setattr(play, "play_drill", lambda *_, **__: DrillReport(seed=1, engine=None, passed=False, **empty))
    with pytest.raises(TaskFailedError, match="the drill failed") as caught:
        desk.run("drill")
    assert caught.value.result["passed"] is False
