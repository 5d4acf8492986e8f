"""`roundhouse export`, of a real engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.build.engine import Engine
from roundhouse.build.home import home_of
from roundhouse.errors import UsageError


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["export", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_an_engine_is_exported_by_its_name(tiny_engine: Engine) -> None:
    home = ("--home", str(home_of(tiny_engine.folder).path))
    service: Any = yaml.safe_load(run("compose", tiny_engine.manifest.id, *home))["services"]["engine"]
    assert service["volumes"][1]["source"] == str(tiny_engine.folder)
    documents = list(yaml.safe_load_all(run("kubernetes", tiny_engine.manifest.id, "--image", "registry/ours:1", *home)))
    images = {each["spec"]["template"]["spec"]["containers"][0]["image"] for each in documents if each["kind"] == "Deployment"}
    assert images == {"registry/ours:1"}


@pytest.mark.parametrize("words", [("compose", "nothing"), ("kubernetes", "nothing"), ("dashboard",)])
def test_it_goes_into_a_new_file_or_nowhere(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    for output, complaint in {
        "mine": r"mine is there already",
        ".": "is a folder",
        "none/file": r"the folder \S+/none is missing",
        "mine/file": "mine is no folder",
    }.items():
        with pytest.raises(UsageError, match=complaint):
            CliRunner().invoke(app, ["export", *words, "--output", str(tmp_path / output)], catch_exceptions=False)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("mine", "kept")]


def test_it_goes_into_a_file(tmp_path: Path) -> None:
    assert run("dashboard", "--output", str(tmp_path / "board.json")) == ""
    assert json.loads((tmp_path / "board.json").read_text()) == json.loads(run("dashboard"))
