from __future__ import annotations

from pathlib import Path

import pytest

from roundhouse.errors import ServeError
from roundhouse.serve.triton.lint import lint_repository
from roundhouse.serve.triton.repository import write_model
from roundhouse.serve.triton.staging import staged_model


def test_a_model_is_in_the_repository_when_all_of_it_is(tmp_path: Path) -> None:
    repository = tmp_path / "made" / "models"
    write_model(repository, "a", {})
    with staged_model(repository, "b") as staging:
        write_model(staging, "b", {})
        assert not (repository / "b").exists()
        lint_repository(repository)  # what is on its way in is no model
    assert sorted(path.name for path in repository.iterdir()) == ["a", "b"]
    lint_repository(repository)
    assert (repository / "b").stat().st_mode == (repository / "a").stat().st_mode  # readable to whom the others are


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> None:
        with staged_model(tmp_path, "b") as staging:
            write_model(staging, "b", {})
            raise ServeError("it does not pass")

    with pytest.raises(ServeError, match="does not pass"):
        fail()
    assert list(tmp_path.iterdir()) == []
