"""`roundhouse --server URL build`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundhouse.build.command_options import JsonOption, print_json
from roundhouse.build.recipe_options import (
    BuildWeightsOption,
    EpOption,
    GroupOption,
    KvOption,
    NameOption,
    PpOption,
    SetOption,
    TargetOption,
    TpOption,
)
from roundhouse.build.terminal import answer_console

from .options import FollowOption
from .session import client_of

if TYPE_CHECKING:
    from ..jobs.records import JobDetail
    from .client import Client

__all__ = ["build"]


def build(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|RECIPE",
            help="A model of the server's: its whole path there, demo:smollm2 or a hub id; or a recipe.yaml of this machine.",
        ),
    ],
    name: NameOption = None,
    weights: BuildWeightsOption = None,
    group: GroupOption = None,
    kv: KvOption = None,
    target: TargetOption = None,
    tp: TpOption = None,
    pp: PpOption = None,
    ep: EpOption = None,
    settings: SetOption = None,
    follow: FollowOption = False,
    json: JsonOption = False,
) -> None:
    """Put a build in line for the server's workers. What the plan refuses is refused at once, with exit code 3."""
    client = client_of(context)
    from ..jobs.records import JobDetail
    from .recipes import keys_of, model_is_there, recipe_for_server
    from .telling import tell_queued

    recipe = recipe_for_server(
        source,
        settings,
        client.server,
        name=name,
        weights=weights,
        group_size=group,
        kv_cache=kv,
        target=target,
        tensor_parallel=tp,
        pipeline_parallel=pp,
        expert_parallel=ep,
    )
    with model_is_there(recipe, client.server):
        job = client.post("/builds", JobDetail, {"recipe": keys_of(recipe)})
    if not follow:
        tell_queued(client, [job.id], json=json, answer=job)
        return
    from .following import follow_job

    _show(client, follow_job(client, job.id), json=json)


def _show(client: Client, job: JobDetail, *, json: bool) -> None:
    """What was built, as a build on this machine is shown."""
    from roundhouse.build.engine import Engine, Manifest
    from roundhouse.build.engine_view import engine_summary

    from ..engines.records import EngineDetail

    new = bool((job.result or {}).get("new"))
    engine = client.get(f"/engines/{job.engine_id}", EngineDetail)
    folder = next((f"{each.host}:{each.folder}" for each in engine.replicas if each.host == job.worker_host), "")
    if json:
        print_json({"new": new, "job": job.id, "folder": folder, **engine.manifest})
        return
    console = answer_console()
    if not new:
        console.print("This engine was there already; nothing was built.")
    console.print(engine_summary(Engine(Path(folder), Manifest.model_validate(engine.manifest, extra="ignore"))))
    console.print(f"Next: roundhouse --server {client.server} deployments start {engine.name}", markup=False, soft_wrap=True)
