"""`roundhouse export`, of a real engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.build.engine import Engine
from roundhouse.build.home import home_of


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


def test_it_goes_into_a_file(tmp_path: Path) -> None:
    assert run("dashboard", "--output", str(tmp_path / "board.json")) == ""
    assert json.loads((tmp_path / "board.json").read_text()) == json.loads(run("dashboard"))
