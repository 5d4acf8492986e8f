"""`roundhouse serve --tool-form`: what the command makes of it before anything starts."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.errors import UsageError
from roundhouse.serve import deployment
from roundhouse.serve.openai.tools import FORM_NAMES


@pytest.mark.parametrize("name", ["xml", "Hermes", ""])
def test_a_form_that_there_is_not_is_refused_with_those_that_there_are(
    tiny_engine: Engine, session_home: Home, name: str
) -> None:
    asked = ["serve", str(tiny_engine.folder), "--tool-form", name, "--home", str(session_home.path)]
    refused = CliRunner().invoke(app, asked).exception
    assert isinstance(refused, UsageError)
    assert str(refused) == f"there is no tool form {name!r}\nKnown are {', '.join(FORM_NAMES)}."


@pytest.mark.parametrize("name", FORM_NAMES)
def test_a_form_that_there_is_reaches_the_deployment(
    tiny_engine: Engine, session_home: Home, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    served: list[Any] = []
    monkeypatch.setattr(deployment, "run_deployment", lambda made, on_ready: served.append(made))
    asked = ["serve", str(tiny_engine.folder), "--tool-form", name, "--home", str(session_home.path)]
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert served[0]._tool_form.name == name


def test_the_help_names_every_form() -> None:
    shown = " ".join(CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "1000"}).stdout.split())
    assert f"How models write tool calls: {', '.join(FORM_NAMES[:-1])} or {FORM_NAMES[-1]}." in shown
