"""The documentation names only things that exist, and names all that matter."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main

from roundhouse.__main__ import app
from roundhouse.build.recipe import Calibration, Recipe, recipe_from
from roundhouse.console.remote.app import app as remote_app

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    ROOT / name
    for name in subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
)


def page_ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def load_reference() -> Any:
    spec = importlib.util.spec_from_file_location("docs_reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date() -> None:
    for path, text in load_reference().generated().items():
        assert path.read_text() == text, f"run `make docs`: {path.name} is out of date"


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_commands_and_their_options_exist(page: Path) -> None:
    found = re.findall(r"(?:^|`|\s|/)roundhouse (--server [^\s`]+ )?((?:[a-z]|--version)[^`\n|#]*)", page.read_text())
    for server, line in found:
        words = shlex.split(line.split("(")[0].strip(), posix=True)
        command: Any = typer.main.get_command(remote_app if server else app)
        while words and hasattr(command, "commands"):
            named = words.pop(0) if words[0] in command.commands else getattr(command, "unnamed", None)
            if named is None:
                break
            command = command.commands[named]
        assert command.name != "roundhouse" or words[:1] == ["--version"], f"`roundhouse {line}` is not a command"
        known = {name for parameter in command.params for name in parameter.opts}
        assert [word for word in words if word.startswith("--") and word.split("=")[0] not in known] == [], line


def test_every_recipe_key_is_explained_and_every_explained_key_exists() -> None:
    text = (ROOT / "docs" / "recipes.md").read_text()
    explained = {key for row in re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}
    assert explained == set(Recipe.model_fields)
    calibration = next(line for line in text.splitlines() if line.startswith("| `calibration`"))
    assert set(Calibration.model_fields) <= set(re.findall(r"`(\w+)`", calibration))


def test_the_recipe_in_the_docs_is_a_recipe() -> None:
    import yaml

    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "recipes.md").read_text(), re.DOTALL)
    recipe_from(yaml.safe_load(block))


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=page_ids)
def test_files_that_are_named_exist(page: Path) -> None:
    named = re.findall(r"`((?:plugins|build|serve|tests|docs)/[\w./-]+|Makefile|constraints\.txt)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", page.read_text())) <= targets
