"""`roundhouse bench compare`: of runs that there are, or of engines and endpoints that are first measured by turns."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at, print_json
from roundhouse.build.extras import require_extra
from roundhouse.build.terminal import answer_console
from roundhouse.errors import UsageError

from .finding import find_run
from .load_options import with_load_options
from .measuring_command import measured

__all__ = ["compare_runs"]


@with_load_options
def compare_runs(
    context: typer.Context,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN RUN...",
            help="The base first: ids of runs, starts of them, `latest`, or exported files. With --interleaved engines, URLs.",
        ),
    ],
    interleaved: Annotated[
        bool, typer.Option("--interleaved", help="Measure them first, by turns: what disturbs the machine hits all alike.")
    ] = False,
    home: HomeOption = None,
    json: JsonOption = False,
    **load: Any,
) -> None:
    """Set runs against the first of them: ratios with intervals, what differs, and what speaks against comparing them."""
    if len(runs) < 2:
        raise UsageError("a comparison takes two runs", hint="`roundhouse bench list` shows what there is.")
    if not interleaved:
        _refuse_load_options(context)
    require_extra("serve", only=None if interleaved else ("numpy", "scipy"))
    from .comparing import compare
    from .store import BenchmarkStore

    place, wanted = home_at(home), runs
    if interleaved:
        wanted = [folder.name for folder in measured(place, runs, load, json=json)]
    store = BenchmarkStore(place)
    compared = compare([find_run(store, run) for run in wanted])
    if json:
        print_json(compared.model_dump(mode="json"))
        return
    from .tables import comparison_view

    answer_console().print(comparison_view(compared))


def _refuse_load_options(context: typer.Context) -> None:
    """What is asked belongs to runs that are still to be measured."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        given = source is not None and source.name != "DEFAULT"
        if given and parameter.name not in ("runs", "interleaved", "home", "json"):
            raise UsageError(f"{parameter.opts[0]} goes with --interleaved", hint="Without it, runs are compared as they are.")
