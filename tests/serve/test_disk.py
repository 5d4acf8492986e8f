from __future__ import annotations

from pathlib import Path

import pytest

from roundhouse.errors import ServeError
from roundhouse.serve.disk import spelled_out, write_whole, writing


def test_a_file_that_cannot_be_written_is_named_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(ServeError) as caught, writing("the list", tmp_path / "gone", variable="SOME_PLACE"):
        (tmp_path / "gone" / "list").write_text("x")
    assert caught.value.message == f"the list cannot be written to {tmp_path}/gone: No such file or directory"
    assert caught.value.hint == "Free disk space, or set SOME_PLACE to another folder."


def test_other_errors_are_left_alone(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), writing("the list", tmp_path):
        raise ValueError("mine")


def test_a_file_is_whole_or_as_it_was_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "list"
    write_whole(path, b"one")
    assert path.read_bytes() == b"one"

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"one, two")
    assert [each.name for each in tmp_path.iterdir()] == ["list"]
    assert path.read_bytes() == b"one"


def test_a_home_is_spelled_out_and_that_of_nobody_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert spelled_out("~/runs.json") == Path("/home/me/runs.json")
    assert spelled_out("~no-such-user/runs.json") == Path("~no-such-user/runs.json")
