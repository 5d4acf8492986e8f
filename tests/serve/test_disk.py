from __future__ import annotations

from pathlib import Path

import pytest

from roundhouse.errors import ServeError
from roundhouse.serve.disk import writing


def test_a_file_that_cannot_be_written_is_named_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(ServeError) as caught, writing("the list", tmp_path / "gone", variable="SOME_PLACE"):
        (tmp_path / "gone" / "list").write_text("x")
    assert caught.value.message == f"the list cannot be written to {tmp_path}/gone: No such file or directory"
    assert caught.value.hint == "Free disk space, or set SOME_PLACE to another folder."


def test_other_errors_are_left_alone(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), writing("the list", tmp_path):
        raise ValueError("mine")
