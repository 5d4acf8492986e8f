"""`roundhouse serve --tool-form`: what the command makes of it before anything starts."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.errors import UsageError
from roundhouse.serve import deployment
from roundhouse.serve.openai.tools import FORM_NAMES


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The deployments that would be served."""
    made: list[Any] = []
    monkeypatch.setattr(deployment, "run_deployment", lambda each, on_ready: made.append(each))
    return made


def serve(engine: Engine, home: Home, form: str) -> Result:
    return CliRunner().invoke(app, ["serve", str(engine.folder), "--tool-form", form, "--home", str(home.path)])


@pytest.mark.parametrize("form", ["xml", "Hermes", ""])
def test_a_form_that_there_is_not_is_refused_with_those_that_there_are(
    tiny_engine: Engine, session_home: Home, served: list[Any], form: str
) -> None:
    refused = serve(tiny_engine, session_home, form).exception
    assert isinstance(refused, UsageError)
    assert str(refused) == f"there is no tool form {form!r}\nKnown are {', '.join(FORM_NAMES)}."
    assert served == []


@pytest.mark.parametrize("form", FORM_NAMES)
def test_a_form_that_there_is_reaches_the_deployment(
    tiny_engine: Engine, session_home: Home, served: list[Any], form: str
) -> None:
    assert serve(tiny_engine, session_home, form).exit_code == 0
    assert served[0]._tool_form.name == form


def test_the_help_names_every_form() -> None:
    shown = " ".join(CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "1000"}).stdout.split())
    assert f"How models write tool calls: {', '.join(FORM_NAMES[:-1])} or {FORM_NAMES[-1]}." in shown
