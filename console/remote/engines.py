"""`roundhouse --server URL engines …`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundhouse.build.command_options import JsonOption, print_json
from roundhouse.build.terminal import answer_console

from .options import EngineArgument, FollowOption, PageOption, SizeOption, YesOption
from .session import client_of

if TYPE_CHECKING:
    from ..engines.records import EngineJob
    from .client import Client

__all__ = ["engines"]

engines = typer.Typer(help="List, show, verify and remove engines of a console.", no_args_is_help=True)


@engines.command("list")
def list_engines(
    context: typer.Context,
    text: Annotated[str | None, typer.Option(help="Part of a name or model, or the beginning of an id.")] = None,
    host: Annotated[str | None, typer.Option(help="Those that this host has.")] = None,
    state: Annotated[str, typer.Option(help="here, present, damaged, gone or any.")] = "here",
    page: PageOption = 1,
    size: SizeOption = 50,
    json: JsonOption = False,
) -> None:
    """List engines, the newest first."""
    client = client_of(context)
    from ..engines.records import EngineRow
    from ..paging import Paged
    from .telling import print_record, show_list
    from .views import engines_table

    query = {"text": text, "host": host, "state": state, "page": page, "size": size}
    found = client.get("/engines", Paged[EngineRow], query)
    if json:
        print_record(found)
    else:
        show_list(found, engines_table(found.items), nothing="No engines.")


@engines.command("show")
def show_engine(context: typer.Context, engine: EngineArgument, json: JsonOption = False) -> None:
    """Show what an engine is, where it lies, and what became of each module."""
    client = client_of(context)
    from roundhouse.build.engine import Engine, Manifest
    from roundhouse.build.engine_view import engine_summary, modules_table

    from ..engines.records import EngineDetail
    from .finding import find_engine
    from .telling import print_record
    from .views import replicas_table

    found = client.get(f"/engines/{find_engine(client, engine).id}", EngineDetail)
    if json:
        print_record(found)
        return
    folders = ", ".join(f"{each.host}:{each.folder}" for each in found.replicas) or "no host has it any more"
    read = Engine(Path(folders), Manifest.model_validate(found.manifest, extra="ignore"))
    answer_console().print(engine_summary(read), replicas_table(found), modules_table(read))


@engines.command("verify")
def verify_engine(
    context: typer.Context, engine: EngineArgument, follow: FollowOption = False, json: JsonOption = False
) -> None:
    """Have every file of an engine hashed against its manifest, on each host that has it."""
    client = client_of(context)
    from pydantic import TypeAdapter

    from ..engines.records import EngineJob
    from .finding import find_engine

    found = find_engine(client, engine)
    jobs = client.post(f"/engines/{found.id}/verify", TypeAdapter(tuple[EngineJob, ...]))
    _tell(client, jobs, follow=follow, json=json)


@engines.command("remove")
def remove_engine(
    context: typer.Context,
    engine: EngineArgument,
    yes: YesOption = False,
    follow: FollowOption = False,
    json: JsonOption = False,
) -> None:
    """Have an engine's files removed from every host that has them; what is known of it stays."""
    client = client_of(context)
    from pydantic import TypeAdapter

    from ..engines.records import EngineJob
    from .finding import find_engine

    found = find_engine(client, engine)
    hosts = ", ".join((*found.hosts, *found.damaged_hosts)) or "no host"
    question = f"Remove engine {found.id} ({found.name}) from {hosts}, by {client.server}?"
    if not yes and not typer.confirm(question, err=True):
        raise typer.Abort
    jobs = client.delete(f"/engines/{found.id}", TypeAdapter(tuple[EngineJob, ...]))
    _tell(client, jobs, follow=follow, json=json)


def _tell(client: Client, jobs: Sequence[EngineJob], *, follow: bool, json: bool) -> None:
    from .telling import tell_queued

    if not follow:
        tell_queued(client, [job.id for job in jobs], json=json, answer=jobs)
        return
    from .following import follow_job

    results = [follow_job(client, job.id).result for job in jobs]
    if json:
        print_json(results)
    else:
        for job, result in zip(jobs, results, strict=True):
            answer_console().print(f"job {job.id} on {job.host}: {_words(result)}", markup=False)


def _words(result: dict[str, object] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (result or {}).items() if name != "engine_id") or "done"
