"""One build at a time per engine, nothing left of the dead, nothing half-published."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from roundhouse.build.workspace import remove_dead_builds, workspace

_HOLD = """
import sys, time
from pathlib import Path
from roundhouse.build.workspace import workspace
with workspace(Path(sys.argv[1]), on_wait=lambda: print("waiting", flush=True)) as place:
    if place is None:
        print("there already", flush=True)
    else:
        (place.folder / "file").write_text("x")
        print("building", flush=True)
        sys.stdin.read()
        place.publish()
"""


def hold(target: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_second_build_of_one_engine_waits_and_finds_it(tmp_path: Path) -> None:
    with hold(tmp_path / "id") as first:
        assert line(first) == "building"
        with hold(tmp_path / "id") as second:
            assert line(second) == "waiting"
            first.communicate()
            assert line(second) == "there already"
    assert (tmp_path / "id" / "file").read_text() == "x"


def test_what_a_killed_build_left_is_removed_but_not_what_is_alive(tmp_path: Path) -> None:
    with hold(tmp_path / "alive") as alive, hold(tmp_path / "dead") as dead:
        assert line(alive) == line(dead) == "building"
        dead.kill()
        dead.wait()
        remove_dead_builds(tmp_path)
        assert not (tmp_path / ".building" / "dead").exists()
        assert (tmp_path / ".building" / "alive" / "file").exists()
        alive.communicate()
    assert not (tmp_path / "dead").exists()


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with workspace(tmp_path / "id", on_wait=lambda: None):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert not (tmp_path / "id").exists()
    assert not (tmp_path / ".building" / "id").exists()
