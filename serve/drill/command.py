"""`roundhouse drill`."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at, print_json
from roundhouse.build.extras import require_extra
from roundhouse.build.terminal import answer_console
from roundhouse.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from .episode import Ground
    from .kinds import FaultName
    from .levels import Level

__all__ = ["drill"]

_STEPS = 2_000
_STEPS_WITH_ENGINE = 100
_LEVELS = ("tags", "tags+content")


def drill(
    engine: Annotated[str | None, typer.Argument(help="An engine whose model runs. Default: no model.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Decides everything. Default: a new one, which is shown.")] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help=f"Of each kind at each level. Default: {_STEPS:,}; {_STEPS_WITH_ENGINE} with an engine."),
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
    import msgspec

    from ..threads import prepare_threads

    prepare_threads()
    from ..runtimes.kernel_choice import find_kernels
    from .drill import cases_of, run_drill
    from .synthetic_ground import synthetic_ground
    from .view import drill_table, drill_verdict

    cases = cases_of(_levels(guard, guard_sample), _kinds(fault))
    if not cases:
        raise UsageError(
            "these faults do not depend on --guard-sample", hint="Leave it out, or choose late_write or rows_permuted."
        )
    ground: Callable[[Random], Ground] = synthetic_ground
    engine_id = None
    place = home_at(home)
    find_kernels("auto", place.kernels)  # the guard that engines run with here
    if engine is not None:
        from roundhouse.build.store import EngineStore

        from .engine_ground import engine_grounds

        found = EngineStore(place).find(engine)
        ground, engine_id = engine_grounds(found), found.manifest.id
    # Every fault that is found is an error in the loop's log, and here there are thousands.
    logging.getLogger("roundhouse.serve.engine").addHandler(logging.NullHandler())
    report = run_drill(
        ground,
        cases,
        seed=secrets.randbelow(2**31) if seed is None else seed,
        steps=steps or (_STEPS if engine is None else _STEPS_WITH_ENGINE),
        engine=engine_id,
    )
    if json:
        print_json(msgspec.to_builtins(report))
    else:
        console = answer_console()
        console.print(drill_table(report))
        console.print(drill_verdict(report), markup=False, highlight=False, soft_wrap=True)
    if not report.passed:
        raise typer.Exit(1)


def _levels(guards: list[str] | None, share: float | None) -> list[Level]:
    from roundhouse.build.recipe import GUARD_SAMPLE, Guard

    from .levels import Level

    known: tuple[Guard, ...] = get_args(Guard)
    for each in guards or ():
        if each not in known:
            raise UsageError(f"--guard {each}: there is {', '.join(known)}")
    if share is not None and guards and "tags+content" not in guards:
        raise UsageError("--guard-sample belongs to --guard tags+content")
    if share == 0:
        raise UsageError("--guard-sample 0 would compare no page", hint="Give a share above 0, or --guard tags.")
    levels = [Level(each, 1.0 if share is None else share) for each in known if each in (guards or _LEVELS)]
    if guards is None and share is None:
        levels.append(Level("tags+content", GUARD_SAMPLE))
    return levels


def _kinds(faults: list[str] | None) -> list[FaultName | None]:
    from .kinds import KINDS

    wanted = faults or ["none", *KINDS]
    for name in wanted:
        if name not in ("none", *KINDS):
            raise UsageError(f"--fault {name} is unknown; one of none, {', '.join(KINDS)}")
    return [kind for kind in (None, *KINDS) if (kind or "none") in wanted]
