"""All records of a kind in a home, also while others remove some and some are damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pydantic import BaseModel

from roundhouse.build.home import Home
from roundhouse.errors import ServeError
from roundhouse.serve.history import HomeStore, read_header, require_there


class About(BaseModel):
    what: str


def read(folder: Path) -> str:
    """A record whose name says what happens while it is read."""
    about = read_header(folder, About)
    if about.what == "removed":
        shutil.rmtree(folder)
    require_there(folder)
    return about.what


def made(home: Home, *names: str) -> HomeStore[str]:
    store = HomeStore(home, "numbers", "number", read)
    for number, name in enumerate(names):
        with store.records.create(f"{number}a", About(what=name)):
            pass
    return store


def test_readable_ones_are_read_and_damaged_ones_are_named(tmp_path: Path) -> None:
    store = made(Home(tmp_path), "one", "two", "three")
    (store.records.find("1a") / "header.json").write_text("{")
    assert sorted(store) == ["one", "three"]
    found, damaged = store.read_all()
    assert sorted(found) == ["one", "three"]
    assert [("1a/header.json is damaged" in each) for each in damaged] == [True]
    assert store.open("0") == "one"
    with pytest.raises(ServeError, match="damaged"):
        store.open("1a")


def test_one_that_is_removed_while_it_is_read_is_not_damaged(tmp_path: Path) -> None:
    store = made(Home(tmp_path), "one", "removed")
    assert store.read_all() == (["one"], [])
