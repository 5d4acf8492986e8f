from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from roundhouse.serve.engine_options import with_engine_options


def command(name: str, home: Path | None = None, **values: Any) -> None:
    """Say what was given."""
    typer.echo(f"{name} {home} {values['guard']} {values['max_batch_size']}")


def test_a_command_has_the_options_before_its_home_and_gets_their_values() -> None:
    app = typer.Typer()
    app.command()(with_engine_options(command))
    result = CliRunner().invoke(app, ["e1", "--guard", "tags", "--max-batch-size", "3"], catch_exceptions=False)
    assert result.output == "e1 None tags 3\n"
    names = list(inspect.signature(with_engine_options(command)).parameters)
    assert (names[:2], names[-2:]) == (["name", "guard"], ["kernels", "home"])


def test_a_command_can_be_given_the_options_twice() -> None:
    first, second = with_engine_options(command), with_engine_options(command)
    assert list(inspect.signature(first).parameters) == list(inspect.signature(second).parameters)
    assert list(inspect.signature(command).parameters) == ["name", "home", "values"]
    assert second.__doc__ == command.__doc__
