"""Engines on disk: damage is named, lookup is forgiving but never guesses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.build.store import EngineStore
from roundhouse.errors import EngineError, UsageError


@pytest.fixture
def copied(tiny_engine: Engine, tmp_path: Path) -> tuple[EngineStore, Path]:
    """A store of its own with a copy of the tiny engine."""
    store = EngineStore(Home(tmp_path))
    shutil.copytree(tiny_engine.folder, store.path(tiny_engine.manifest.id))
    return store, store.path(tiny_engine.manifest.id)


def test_an_intact_engine_verifies(copied: tuple[EngineStore, Path]) -> None:
    Engine.open(copied[1]).verify()


def test_a_truncated_file_is_noticed_at_open(copied: tuple[EngineStore, Path]) -> None:
    weights = copied[1] / "checkpoint" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(EngineError, match=r"model\.safetensors has .* bytes instead of"):
        Engine.open(copied[1])


def test_a_missing_file_is_noticed_at_open(copied: tuple[EngineStore, Path]) -> None:
    (copied[1] / "checkpoint" / "tokenizer.json").unlink()
    with pytest.raises(EngineError, match=r"tokenizer\.json is missing"):
        Engine.open(copied[1])


def test_a_changed_byte_is_noticed_by_verify(copied: tuple[EngineStore, Path]) -> None:
    config = copied[1] / "checkpoint" / "config.json"
    config.write_bytes(config.read_bytes().replace(b"{", b"[", 1))
    with pytest.raises(EngineError, match=r"config\.json has changed"):
        Engine.open(copied[1]).verify()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1}'])
def test_a_manifest_that_cannot_be_read_is_said(copied: tuple[EngineStore, Path], text: str) -> None:
    (copied[1] / "engine.json").write_text(text)
    with pytest.raises(EngineError, match="cannot be read by this version"):
        Engine.open(copied[1])


def test_unknown_manifest_keys_are_not_dropped(copied: tuple[EngineStore, Path]) -> None:
    path = copied[1] / "engine.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"from_the_future": 1}))
    with pytest.raises(EngineError, match="cannot be read by this version"):
        Engine.open(copied[1])


def test_an_engine_is_found_by_id_prefix_name_and_folder(copied: tuple[EngineStore, Path]) -> None:
    store, folder = copied
    name = Engine.open(folder).manifest.name
    for wanted in (folder.name, folder.name[:5], name, str(folder)):
        assert store.find(wanted).folder == folder


@pytest.mark.parametrize("wanted", ["zzz", "", "."])
def test_nothing_is_found_for_what_is_not_there(copied: tuple[EngineStore, Path], wanted: str) -> None:
    with pytest.raises(UsageError):
        EngineStore(Home(copied[0].folder / "other")).find(wanted)


def test_the_engines_that_are_there_are_told_by_name(copied: tuple[EngineStore, Path]) -> None:
    store, folder = copied
    name = Engine.open(folder).manifest.name
    with pytest.raises(UsageError) as caught:
        store.find("zzz")
    assert str(caught.value) == f"no engine is called 'zzz'; here are: {name} ({folder.name})"


def test_a_name_that_two_engines_share_is_not_guessed(copied: tuple[EngineStore, Path]) -> None:
    store, folder = copied
    other = folder.with_name("0" * 16)
    shutil.copytree(folder, other)
    manifest = other / "engine.json"
    manifest.write_text(manifest.read_text().replace(folder.name, other.name))
    with pytest.raises(UsageError, match="could be several engines"):
        store.find(Engine.open(folder).manifest.name)


def test_damaged_engines_are_listed_apart_and_can_be_removed_by_id(copied: tuple[EngineStore, Path]) -> None:
    store, folder = copied
    (folder / "engine.json").unlink()
    assert list(store) == []
    assert [name for name, _ in store.damaged()] == [folder.name]
    store.remove(store.locate(folder.name))
    assert store.damaged() == []
    assert not folder.exists()


def test_a_damaged_engine_is_found_by_name_and_said_to_be_damaged(copied: tuple[EngineStore, Path]) -> None:
    store, folder = copied
    name = Engine.open(folder).manifest.name
    (folder / "checkpoint" / "config.json").unlink()
    with pytest.raises(EngineError, match=r"is damaged: config\.json is missing"):
        store.find(name)
    assert store.locate(name) == folder


def test_a_running_engine_is_not_removed(copied: tuple[EngineStore, Path]) -> None:
    store, folder = copied
    with Engine.open(folder).held(), Engine.open(folder).held(), pytest.raises(UsageError, match="is running"):
        store.remove(folder)
    store.remove(folder)
    assert not folder.exists()


def test_what_a_killed_removal_left_hinders_nobody(copied: tuple[EngineStore, Path]) -> None:
    store, folder = copied
    (store.folder / ".removed" / folder.name / "checkpoint").mkdir(parents=True)
    store.remove(store.locate(folder.name))
    assert [path.relative_to(store.folder) for path in store.folder.rglob("*")] == [Path(".removed")]


def test_only_engines_of_the_store_are_removed(copied: tuple[EngineStore, Path], tmp_path: Path) -> None:
    store, folder = copied
    outside = tmp_path / "outside"
    shutil.copytree(folder, outside)
    with pytest.raises(UsageError, match="is not in"):
        store.locate(str(outside))


def linked_elsewhere(path: Path, tmp_path: Path) -> Path:
    """Move something out of the store, and leave a link to it."""
    elsewhere = tmp_path / "elsewhere" / path.name
    elsewhere.parent.mkdir(exist_ok=True)
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    return elsewhere


@pytest.mark.parametrize("name", ["checkpoint", "checkpoint/model.safetensors", "engine.json"])
def test_no_part_of_an_engine_is_a_link(copied: tuple[EngineStore, Path], tmp_path: Path, name: str) -> None:
    linked_elsewhere(copied[1] / name, tmp_path)
    with pytest.raises(EngineError, match="is a link"):
        Engine.open(copied[1])


@pytest.mark.parametrize("name", ["../another/file", "{outside}"])
def test_no_file_of_an_engine_lies_outside(copied: tuple[EngineStore, Path], tmp_path: Path, name: str) -> None:
    outside = copied[1].parent / "another" / "file"
    outside.parent.mkdir()
    outside.write_bytes(b"12345")
    manifest = copied[1] / "engine.json"
    told = json.loads(manifest.read_text())
    told["files"][name.format(outside=outside)] = {"bytes": 5, "sha256": "0" * 64}
    manifest.write_text(json.dumps(told))
    with pytest.raises(EngineError, match="lies outside"):
        Engine.open(copied[1])


def test_a_link_to_an_engine_is_none_of_the_store_and_its_removal_leaves_what_it_leads_to(
    copied: tuple[EngineStore, Path], tmp_path: Path
) -> None:
    store, folder = copied
    elsewhere = linked_elsewhere(folder, tmp_path)
    assert list(store) == []
    assert [name for name, _ in store.damaged()] == [folder.name]
    for opened in (store.open, store.find):
        with pytest.raises(EngineError, match="is a link"):
            opened(folder.name)
    store.remove(store.locate(folder.name))
    assert not folder.is_symlink()
    assert list((store.folder / ".removed").iterdir()) == []
    assert Engine.open(elsewhere).manifest.id == folder.name


def test_an_engines_home_may_be_a_link(copied: tuple[EngineStore, Path], tmp_path: Path) -> None:
    linked_elsewhere(copied[0].folder, tmp_path)
    copied[0].open(copied[1].name).verify()


def test_an_engine_is_opened_by_its_whole_id_and_by_nothing_else(copied: tuple[EngineStore, Path]) -> None:
    store, folder = copied
    assert store.open(folder.name).folder == folder
    for other in (folder.name[:8], Engine.open(folder).manifest.name, str(folder), f"../engines/{folder.name}", "", "."):
        with pytest.raises(UsageError, match="no engine has the id"):
            store.open(other)
    folder.rename(store.path("another"))
    with pytest.raises(EngineError, match="holds another engine"):
        store.open("another")
