"""The database knows what lies in a home, whoever put it there or took it away."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, select

from roundhouse.build.engine import MANIFEST, Engine, write_manifest
from roundhouse.build.home import Home
from roundhouse.build.store import EngineStore
from roundhouse.console.database.database import Database
from roundhouse.console.engines.recording import mark_replica
from roundhouse.console.models import EngineRecord, EngineReplica
from roundhouse.console.worker import inventory as inventories
from roundhouse.console.worker.inventory import Inventory


@pytest.fixture
def engine(home: Home, tiny_engine: Engine) -> Engine:
    shutil.copytree(tiny_engine.folder, home.engines / tiny_engine.manifest.id)
    return Engine.open(home.engines / tiny_engine.manifest.id)


@pytest.fixture
def inventory(home: Home) -> Inventory:
    return Inventory(home, "here")


def replicas(database: Database) -> list[tuple[str, str, str | None]]:
    with database.reading() as session:
        found = session.scalars(select(EngineReplica).order_by(EngineReplica.host))
        return [(each.host, each.state, each.problem) for each in found]


def test_engines_that_the_command_line_built_and_removed(
    database: Database, home: Home, engine: Engine, inventory: Inventory
) -> None:
    inventory.reconcile(database)
    with database.reading() as session:
        record = session.scalars(select(EngineRecord)).one()
    manifest = engine.manifest
    assert (record.id, record.name, record.weights, record.kv_cache) == (manifest.id, manifest.name, "int4_awq", "fp8")
    assert (record.group_size, record.kv_tokens) == (manifest.plan.group_size, manifest.plan.kv_tokens)
    assert record.manifest == manifest.model_dump(mode="json")
    assert record.created_at == datetime.fromisoformat(manifest.created)
    assert replicas(database) == [("here", "present", None)]
    Inventory(home, "there").reconcile(database)
    EngineStore(home).remove(engine.folder)
    inventory.reconcile(database)
    assert replicas(database) == [("there", "present", None)]
    with database.reading() as session:
        assert session.scalars(select(EngineRecord.id)).all() == [manifest.id]


def test_damage_is_told_and_does_not_heal_by_itself(
    database: Database, home: Home, engine: Engine, inventory: Inventory
) -> None:
    inventory.reconcile(database)
    weights = next(engine.checkpoint.glob("*.safetensors"))
    weights.rename(weights.with_suffix(".away"))
    inventory.reconcile(database)
    ((_, state, problem),) = replicas(database)
    assert (state, f"{weights.name} is missing" in str(problem)) == ("damaged", True)
    weights.with_suffix(".away").rename(weights)
    inventory.reconcile(database)
    assert replicas(database)[0][1] == "damaged"  # its size is right; its bytes nobody has looked at
    with database.writing() as session:
        mark_replica(session, engine.manifest.id, "here", home, problem=None)
    (engine.folder / MANIFEST).write_text("{}")
    inventory.reconcile(database)
    ((_, state, problem),) = replicas(database)
    assert (state, "cannot be read by this version" in str(problem)) == ("damaged", True)


def test_an_engine_that_was_built_anew_is_another_copy(
    database: Database, home: Home, engine: Engine, inventory: Inventory
) -> None:
    inventory.reconcile(database)
    with database.writing() as session:
        mark_replica(session, engine.manifest.id, "here", home, problem="it has changed")
    inventory.reconcile(database)
    assert replicas(database) == [("here", "damaged", "it has changed")]
    later = (datetime.now(UTC) + timedelta(seconds=2)).isoformat(timespec="seconds")
    write_manifest(engine.folder, engine.manifest.model_copy(update={"created": later, "name": "new"}))
    inventory.reconcile(database)
    assert replicas(database) == [("here", "present", None)]
    with database.reading() as session:
        assert session.scalars(select(EngineRecord.name)).all() == ["new"]


def test_folders_that_are_no_engines_are_left_alone(
    database: Database, home: Home, engine: Engine, inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(engine.folder, home.engines / "a copy")
    (home.engines / "empty").mkdir()
    (home.engines / ".building" / "0123").mkdir(parents=True)
    inventory.reconcile(database)
    assert replicas(database) == [("here", "present", None)]
    monkeypatch.setattr(database, "writing", lambda: pytest.fail("wrote"))
    inventory.reconcile(database)  # nor do they look like something new each time


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"[" * 100_000, b"null", b'{"format": 1}', b'{"a": "\xed\xa0\x80"}'])
def test_whatever_one_folder_holds_the_others_are_found(
    database: Database, home: Home, engine: Engine, inventory: Inventory, text: bytes
) -> None:
    odd = home.engines / "00odd"
    odd.mkdir()
    (odd / MANIFEST).write_bytes(text)
    inventory.reconcile(database)
    assert replicas(database) == [("here", "present", None)]


def test_what_did_not_change_is_not_read_again(
    database: Database, engine: Engine, inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory.reconcile(database)
    monkeypatch.setattr(inventories, "read_manifest", lambda folder: pytest.fail(f"read {folder}"))
    monkeypatch.setattr(database, "writing", lambda: pytest.fail("wrote"))
    inventory.reconcile(database)


def test_a_link_to_an_engine_is_none_of_this_home(
    database: Database, home: Home, engine: Engine, inventory: Inventory, tmp_path: Path
) -> None:
    inventory.reconcile(database)
    engine.folder.rename(tmp_path / "elsewhere")
    engine.folder.symlink_to(tmp_path / "elsewhere")
    inventory.reconcile(database)
    ((_, state, problem),) = replicas(database)
    assert (state, "is a link" in str(problem)) == ("damaged", True)
    with database.writing() as session:
        session.execute(delete(EngineReplica))
    inventory.reconcile(database)
    assert replicas(database) == []
