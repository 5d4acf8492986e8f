"""`roundhouse drill`."""

from __future__ import annotations

from typing import Annotated

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at, print_json
from roundhouse.build.extras import require_extra
from roundhouse.build.terminal import answer_console
from roundhouse.errors import UsageError

__all__ = ["drill"]


def drill(
    engine: Annotated[str | None, typer.Argument(help="An engine whose model runs. Default: no model.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Decides everything. Default: a new one, which is shown.")] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Of each kind at each level. Default: 2,000; 100 with an engine."),
    ] = None,
    fault: Annotated[
        list[str] | None, typer.Option(help="Only this kind (docs/page-tags.md has them), or none: no faults. May be repeated.")
    ] = None,
    guard: Annotated[list[str] | None, typer.Option(help="off, tags or tags+content; may be repeated.")] = None,
    guard_sample: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Share of full pages whose content is checked before a step. Default: 1, then once more 0.02.",
        ),
    ] = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Put faults into the page pool, the tables and the pages of a running engine, and count which ones are stopped in time.

    Exit code 1 when a fault that the level can see lets a token out, or when something is stopped that is right.
    """
    require_extra("serve")
    from ..threads import prepare_threads

    prepare_threads()
    from .choices import kinds_of, levels_of
    from .drill import cases_of
    from .play import play_drill
    from .report import report_as_json
    from .view import drill_table, drill_verdict

    cases = cases_of(levels_of(guard, guard_sample), kinds_of(fault))
    if not cases:
        raise UsageError(
            "these faults do not depend on --guard-sample", hint="Leave it out, or choose late_write or rows_permuted."
        )
    place, found = home_at(home), None
    if engine is not None:
        from roundhouse.build.store import EngineStore

        found = EngineStore(place).find(engine)
    report = play_drill(place, found, cases, seed=seed, steps=steps)
    if json:
        print_json(report_as_json(report))
    else:
        console = answer_console()
        console.print(drill_table(report))
        console.print(drill_verdict(report), markup=False, highlight=False, soft_wrap=True)
    if not report.passed:
        raise typer.Exit(1)
