"""`roundhouse --server URL integrity`."""

from __future__ import annotations

from typing import Annotated

import typer

from roundhouse.build.command_options import JsonOption, print_json
from roundhouse.build.terminal import answer_console

from .options import PageOption, SizeOption
from .session import client_of

__all__ = ["integrity"]


def integrity(
    context: typer.Context,
    deployment: Annotated[str | None, typer.Option(help="Only events of the deployment with this id.")] = None,
    engine: Annotated[str | None, typer.Option(help="Only events of the engine with this id.")] = None,
    kind: Annotated[str | None, typer.Option(help="tag, count or content.")] = None,
    page: PageOption = 1,
    size: SizeOption = 50,
    json: JsonOption = False,
) -> None:
    """Say whether every page check held: what live deployments counted, and each row that was stopped."""
    client = client_of(context)
    from ..integrity.records import EventRow, Integrity
    from ..paging import Paged
    from .telling import show_list
    from .views import events_table

    now = client.get("/integrity", Integrity)
    query = {"deployment": deployment, "engine": engine, "kind": kind, "page": page, "size": size}
    events = client.get("/integrity/events", Paged[EventRow], query)
    if json:
        print_json({**now.model_dump(mode="json"), "events": events.model_dump(mode="json")})
        return
    answer_console().print(now.verdict.sentence, markup=False)
    show_list(events, events_table(events.items), nothing="No row was ever stopped.")
