from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from roundhouse.errors import ServeError
from roundhouse.serve.process.socket_folders import SocketFolders


def test_each_run_has_a_folder_of_its_own_and_none_is_left() -> None:
    folders = SocketFolders()
    first, second = folders.fresh(), folders.fresh()
    assert first != second
    assert first.is_dir()
    assert second.is_dir()
    folders.remove()
    folders.remove()
    assert not first.parent.exists()


def test_a_place_that_takes_no_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    monkeypatch.setattr(tempfile, "tempdir", str(gone))
    with pytest.raises(ServeError, match=rf"no place in {gone}: No such file"):
        SocketFolders()
    gone.mkdir()
    folders = SocketFolders()
    folders.remove()
    with pytest.raises(ServeError, match="no place in"):
        folders.fresh()


def test_a_path_that_is_too_long_for_a_socket_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("long" * 30)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    folders = SocketFolders()
    with pytest.raises(ServeError, match="longer than the 107 bytes") as caught:
        folders.fresh()
    assert "TMPDIR" in (caught.value.hint or "")
