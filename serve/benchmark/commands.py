"""`roundhouse bench`: a group whose command is `run` when no other is named."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at
from roundhouse.build.extras import require_extra

from ..default_command import group_with_default
from .load_options import with_load_options
from .measuring_command import measured, show
from .reading_commands import add_reading_commands

__all__ = ["add_bench_commands"]

_FIRST = "run"


bench = typer.Typer(
    cls=group_with_default(_FIRST),
    help="Measure speed, and keep what was measured. `roundhouse bench ENGINE` is short for `roundhouse bench run ENGINE`.",
    no_args_is_help=True,
)


def add_bench_commands(app: typer.Typer) -> None:
    """Mount this group."""
    add_reading_commands(bench)
    app.add_typer(bench, name="bench")


_Subjects = Annotated[
    list[str],
    typer.Argument(
        metavar="ENGINE|URL...",
        help="Engines, by id, name or folder, or URLs of OpenAI-compatible endpoints. Several are measured by turns. "
        "An engine may have settings of its own: demo:guard=off",
    ),
]


@bench.command(_FIRST)
@with_load_options
def run(subjects: _Subjects, home: HomeOption = None, json: JsonOption = False, **load: Any) -> None:
    """Measure throughput and latency at each concurrency, several times.

    An engine is served on a real Triton server for the time of it, and asked by aiperf through the OpenAI front. Every
    point is kept in the home's history as soon as it is measured, also when the benchmark is stopped or fails.
    """
    require_extra("serve")
    show(measured(home_at(home), subjects, load, json=json), json=json)


@bench.command("setup")
def setup(home: HomeOption = None) -> None:
    """Install aiperf, which makes the load, into an environment of its own in the home."""
    from .aiperf.install import install_aiperf

    install_aiperf(home_at(home), lambda line: typer.echo(line, err=True))
