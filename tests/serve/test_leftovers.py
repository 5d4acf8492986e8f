from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roundhouse.serve.leftovers import owned_name, remove_leftovers, remove_named


@pytest.fixture
def dead_name() -> str:
    """A name that a process made which has ended since."""
    script = "from roundhouse.serve.leftovers import owned_name; print(owned_name())"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def test_files_and_folders_of_dead_processes_go(tmp_path: Path, dead_name: str) -> None:
    (tmp_path / f"{dead_name}_region").touch()
    (tmp_path / dead_name / "inside").mkdir(parents=True)
    assert remove_leftovers(tmp_path) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_nobody_has_buried_yet_is_dead(tmp_path: Path) -> None:
    script = "from roundhouse.serve.leftovers import owned_name; print(owned_name(), flush=True)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays to be asked how
        (tmp_path / f"{name}_region").touch()
        assert remove_leftovers(tmp_path) == 1


def test_what_lives_or_is_not_ours_stays(tmp_path: Path, dead_name: str) -> None:
    pid = dead_name.split("_")[1]
    kept = {owned_name(), f"roundhouse_{pid}_abc123_fromanothernamespace", "roundhouse_notes", f"other_{dead_name}"}
    for name in kept:
        (tmp_path / name).touch()
    assert remove_leftovers(tmp_path) == 0
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_removing_by_name_takes_only_that_owner(tmp_path: Path) -> None:
    first, second = owned_name(), owned_name()
    assert first != second
    for name in (f"{first}_1", f"{first}_2", f"{second}_1"):
        (tmp_path / name).touch()
    assert remove_named(tmp_path, f"{first}_") == 2
    assert [path.name for path in tmp_path.iterdir()] == [f"{second}_1"]


def test_a_link_is_removed_not_followed(tmp_path: Path, dead_name: str) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    os.symlink(target, tmp_path / f"{dead_name}_link")
    assert remove_leftovers(tmp_path) == 1
    assert target.is_dir()
