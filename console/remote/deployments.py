"""`roundhouse --server URL deployments …`; what starts one has a module of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from roundhouse.build.command_options import JsonOption
from roundhouse.build.terminal import answer_console

from .options import FollowOption, PageOption, SizeOption, YesOption
from .session import client_of
from .start_deployment import start_deployment

__all__ = ["deployments"]

deployments = typer.Typer(help="List, show, start and stop deployments of a console.", no_args_is_help=True)

_Deployment = Annotated[str, typer.Argument(metavar="DEPLOYMENT", help="A deployment's id, the start of it, or its name.")]


@deployments.command("list")
def list_deployments(
    context: typer.Context,
    text: Annotated[str | None, typer.Option(help="Part of a name, an id or an engine's name.")] = None,
    state: Annotated[str, typer.Option(help="live, ended, any, or a state such as ready or dead.")] = "live",
    host: Annotated[str | None, typer.Option(help="Those on this host.")] = None,
    page: PageOption = 1,
    size: SizeOption = 50,
    json: JsonOption = False,
) -> None:
    """List deployments, the newest first."""
    client = client_of(context)
    from ..deployments.listing import ListedDeployment
    from ..paging import Paged
    from .telling import print_record, show_list
    from .views import deployments_table

    query = {"text": text, "state": state, "host": host, "page": page, "size": size}
    found = client.get("/deployments", Paged[ListedDeployment], query)
    if json:
        print_record(found)
    else:
        show_list(found, deployments_table([each.deployment for each in found.items]), nothing="No deployments.")


@deployments.command("show")
def show_deployment(context: typer.Context, deployment: _Deployment, json: JsonOption = False) -> None:
    """Show a deployment: where it answers, and what it counts now."""
    client = client_of(context)
    from ..deployments.records import DeploymentDetail
    from .finding import find_deployment
    from .telling import print_record
    from .views import deployment_view

    found = client.get(f"/deployments/{find_deployment(client, deployment).id}", DeploymentDetail)
    if json:
        print_record(found)
    else:
        answer_console().print(deployment_view(found))


deployments.command("start")(start_deployment)


@deployments.command("stop")
def stop_deployment(
    context: typer.Context,
    deployment: _Deployment,
    drain: Annotated[float, typer.Option(min=0, max=600, help="Seconds that running requests may go on.")] = 5.0,
    follow: FollowOption = False,
    json: JsonOption = False,
) -> None:
    """End a deployment; running requests may go on for a while."""
    client = client_of(context)
    from ..deployments.requests import StartedDeployment
    from .finding import find_deployment
    from .telling import print_record, tell_queued

    found = find_deployment(client, deployment)
    asked = client.post(f"/deployments/{found.id}/unload", StartedDeployment, {"drain_s": drain})
    if not follow:
        tell_queued(client, [asked.job_id], json=json, answer=asked)
        return
    from .following import follow_job

    ended = follow_job(client, asked.job_id)
    if json:
        print_record(ended)


@deployments.command("log")
def log(context: typer.Context, deployment: _Deployment, json: JsonOption = False) -> None:
    """Print a deployment's log, as far as the console keeps it."""
    client = client_of(context)
    from ..deployments.records import LogText
    from ..deployments.requests import DeploymentLog
    from .finding import find_deployment
    from .telling import print_record

    found = find_deployment(client, deployment)
    lines: list[LogText] = []
    while more := client.get(f"/deployments/{found.id}/log", DeploymentLog, {"after": lines[-1].number if lines else 0}).lines:
        lines += more
        if not json:
            typer.echo("\n".join(line.text for line in more))
    if json:
        print_record(lines)


@deployments.command("forget")
def forget(context: typer.Context, deployment: _Deployment, yes: YesOption = False) -> None:
    """Remove a deployment that has ended from the lists, with its log."""
    client = client_of(context)
    from .finding import find_deployment

    found = find_deployment(client, deployment)
    if not yes and not typer.confirm(f"Forget deployment {found.id} ({found.name}) and its log?", err=True):
        raise typer.Abort
    client.delete(f"/deployments/{found.id}", type(None))
    answer_console().print(f"Forgot {found.id}.", markup=False)
