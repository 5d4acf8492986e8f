"""`roundhouse --server URL workers`."""

from __future__ import annotations

from typing import Annotated

import typer

from roundhouse.build.command_options import JsonOption

from .options import PageOption, SizeOption
from .session import client_of

__all__ = ["workers"]


def workers(
    context: typer.Context,
    state: Annotated[str | None, typer.Option(help="alive, gone or ended. Default: all.")] = None,
    host: Annotated[str | None, typer.Option(help="Those on this host.")] = None,
    page: PageOption = 1,
    size: SizeOption = 50,
    json: JsonOption = False,
) -> None:
    """List workers, those that are there first."""
    client = client_of(context)
    from ..paging import Paged
    from ..workers.records import WorkerRow
    from .telling import print_record, show_list
    from .views import workers_table

    found = client.get("/workers", Paged[WorkerRow], {"state": state, "host": host, "page": page, "size": size})
    if json:
        print_record(found)
    else:
        show_list(found, workers_table(found.items), nothing="No worker has ever been there.")
