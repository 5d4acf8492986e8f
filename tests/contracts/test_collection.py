"""Every test file is collected: a folder that pytest leaves out by its name would pass for green."""

from __future__ import annotations

from pathlib import Path

import pytest

_TESTS = Path(__file__).parent.parent


def test_every_test_file_is_collected(pytestconfig: pytest.Config) -> None:
    patterns = pytestconfig.getini("norecursedirs")
    left_out = [
        path.relative_to(_TESTS)
        for path in _TESTS.rglob("test_*.py")
        if any(folder.match(pattern) for folder in path.relative_to(_TESTS).parents for pattern in patterns if folder.name)
    ]
    assert left_out == []
    assert (_TESTS / "build").is_dir()
