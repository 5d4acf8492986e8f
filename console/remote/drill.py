"""`roundhouse --server URL drill`."""

from __future__ import annotations

from typing import Annotated

import typer

from roundhouse.build.command_options import JsonOption
from roundhouse.build.terminal import answer_console

from .options import FollowOption
from .session import client_of

__all__ = ["drill"]


def drill(
    context: typer.Context,
    engine: Annotated[str | None, typer.Argument(help="An engine whose model runs. Default: no model.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Decides everything. Default: a new one, which is shown.")] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Of each kind at each level. Default: 2,000; 100 with an engine.")
    ] = None,
    fault: Annotated[
        list[str] | None, typer.Option(help="Only this kind (docs/page-tags.md has them), or none: no faults. May be repeated.")
    ] = None,
    guard: Annotated[list[str] | None, typer.Option(help="off, tags or tags+content; may be repeated.")] = None,
    follow: FollowOption = False,
    json: JsonOption = False,
) -> None:
    """Have faults put into a running engine by one of the server's workers, and counted which ones are stopped in time.

    With --follow, exit code 1 when a fault that the level can see lets a token out, or something is stopped that is right.
    """
    client = client_of(context)
    from ..drills.records import DrillDetail
    from .finding import find_engine
    from .telling import print_record, tell_queued

    wish = {
        "engine_id": find_engine(client, engine).id if engine is not None else None,
        "seed": seed,
        "steps": steps,
        "faults": fault or None,
        "guards": guard or None,
    }
    asked = client.post("/drills", DrillDetail, wish)
    if not follow:
        tell_queued(client, [asked.id], json=json, answer=asked)
        return
    from .following import follow_job, raise_unless_succeeded
    from .views import drill_view

    job = follow_job(client, asked.id, may_fail=True)
    ended = client.get(f"/drills/{asked.id}", DrillDetail)
    if json and ended.report is not None:
        print_record(ended)
    elif ended.report is not None:
        answer_console().print(drill_view(ended.report), ended.sentence)
    raise_unless_succeeded(job)
