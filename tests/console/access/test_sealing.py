"""Secrets that are kept encrypted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from roundhouse.build.home import Home
from roundhouse.console.access.sealing import KEY_VARIABLE, Sealer
from roundhouse.errors import SetupError

KEY = "k" * 32


def test_what_was_sealed_comes_back_and_cannot_be_read() -> None:
    sealed = Sealer(KEY).seal({"api_key": "geheim"})
    assert "geheim" not in sealed
    assert sealed != Sealer(KEY).seal({"api_key": "geheim"})
    assert Sealer(KEY).open(sealed) == {"api_key": "geheim"}


def test_another_key_or_a_changed_text_is_refused() -> None:
    sealed = Sealer(KEY).seal({"api_key": "geheim"})
    for sealer, text in ((Sealer("o" * 32), sealed), (Sealer(KEY), sealed[:-4] + "AAAA"), (Sealer(KEY), "")):
        with pytest.raises(SetupError, match="sealed with another key"):
            sealer.open(text)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(SetupError, match="has 5 characters; it needs 32"):
        Sealer("short")


def test_the_homes_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with ThreadPoolExecutor(8) as pool:
        sealed = list(pool.map(lambda _: Sealer.of(home, {}).seal({"a": "b"}), range(16)))
    assert {Sealer.of(home, {}).open(each)["a"] for each in sealed} == {"b"}
    assert (home.path / "console.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.path.iterdir()] == ["console.key"]


def test_the_environments_key_comes_first(tmp_path: Path) -> None:
    home = Home(tmp_path)
    sealed = Sealer.of(home, {KEY_VARIABLE: KEY}).seal({"a": "b"})
    assert Sealer(KEY).open(sealed) == {"a": "b"}
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="cannot be read or made"):
        Sealer.of(Home(tmp_path / "file"), {})
