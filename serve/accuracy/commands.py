"""`roundhouse evaluate`: a group whose command is `run` when no other is named."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at
from roundhouse.build.extras import require_extra

from ..default_command import group_with_default
from ..engine_options import with_engine_options
from .reading_commands import add_reading_commands, print_evaluation

if TYPE_CHECKING:
    from ..measurement.terminal import MeasurementTerminal

__all__ = ["add_evaluate_commands"]

_FAILED, _UNDECIDED, _INTERRUPTED = 1, 4, 130
"""2 is a mistake of usage, and 3 a refused plan, whatever the command."""
_FIRST = "run"

evaluate = typer.Typer(
    cls=group_with_default(_FIRST),
    help="Measure accuracy, and keep what was answered. `roundhouse evaluate ENGINE` is short for `evaluate run ENGINE`.",
    no_args_is_help=True,
)


def add_evaluate_commands(app: typer.Typer) -> None:
    """Mount this group."""
    add_reading_commands(evaluate)
    app.add_typer(evaluate, name="evaluate")


@evaluate.command(_FIRST)
@with_engine_options
def run(
    subject: Annotated[
        str,
        typer.Argument(metavar="ENGINE|URL", help="An engine, by id, name or folder, or an OpenAI-compatible endpoint's URL."),
    ],
    tasks: Annotated[
        str | None, typer.Option(metavar="A,B", help="Which tasks. Default: all shipped suites, whose names begin with rh-.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="BASE", help="What to compare with: an engine, a URL, or the id of an evaluation of the base."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Questions of each task at most.")] = None,
    data: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Data sets of public tasks. Default: from the Hugging Face hub.")
    ] = None,
    gate: Annotated[float, typer.Option(min=0, help="Points of 100 that a task may be down, beyond noise.")] = 0.8,
    seed: Annotated[int, typer.Option(min=0, help="Of the shipped suites' questions.")] = 0,
    model: Annotated[str | None, typer.Option(help="The model's name at an endpoint that has several.")] = None,
    against_model: Annotated[str | None, typer.Option(help="Likewise, at the base's.")] = None,
    api_key_variable: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable with the endpoint's key.")
    ] = None,
    against_api_key_variable: Annotated[
        str | None, typer.Option(metavar="NAME", help="Likewise, of the base's. Default: none, unless it is the same server.")
    ] = None,
    server_name: Annotated[str | None, typer.Option(help="What serves the endpoint, in words, for the history.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds after which a request to an endpoint has failed.")] = 600.0,
    home: HomeOption = None,
    json: JsonOption = False,
    **overrides: Any,
) -> None:
    """Ask an engine or an endpoint, and compare its answers with a base's.

    Answers are kept in the home's history as they come. Exit code 1: the gate failed; 4: there is a base, and the gate could
    not be measured; 130: it was stopped.
    """
    require_extra("serve")
    from rich.console import Console

    from roundhouse.errors import BenchmarkStoppedError, RoundhouseError

    from ..measurement.terminal import MeasurementTerminal
    from ..stop_signals import stop_signals
    from .run import evaluate as evaluate_wish
    from .store import read_evaluation
    from .wishing import command_of, wish_of, with_ids

    wish = wish_of(
        subject,
        tasks=tasks,
        against=against,
        limit=limit,
        data=data,
        gate_points=gate,
        seed=seed,
        model=model,
        against_model=against_model,
        api_key_variable=api_key_variable,
        against_api_key_variable=against_api_key_variable,
        server=server_name,
        request_timeout_s=timeout,
        overrides=overrides,
    )
    place = home_at(home)
    wish = with_ids(place, wish)
    with stop_signals() as stopping, MeasurementTerminal(Console(file=sys.stderr), stopping) as terminal:
        try:
            folder = evaluate_wish(place, wish, terminal, command=command_of(wish))
        except BenchmarkStoppedError:
            _tell_kept(terminal)
            raise typer.Exit(_INTERRUPTED) from None
        except RoundhouseError:
            _tell_kept(terminal)
            raise
    found = read_evaluation(folder)
    print_evaluation(found, json=json)
    if found.gate.state == "failed":
        raise typer.Exit(_FAILED)
    if found.header.base is not None and found.gate.state == "not measured":
        typer.echo(f"The gate was not measured: {' '.join(found.gate.reasons)}", err=True)
        raise typer.Exit(_UNDECIDED)


def _tell_kept(terminal: MeasurementTerminal) -> None:
    """What was answered before the end is worth something: where it lies, and how it is read."""
    for begun in terminal.folders:
        terminal.say(f"What was answered is kept in {begun}")
        terminal.say(f"See it with: roundhouse evaluate show {begun.name} --items")
