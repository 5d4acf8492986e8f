"""`roundhouse --server URL plan`."""

from __future__ import annotations

from itertools import product
from typing import Annotated

import typer

from roundhouse.build.command_options import JsonOption, print_json
from roundhouse.build.recipe_options import GroupOption, KvOption, SetOption, TargetOption, WeightsOption
from roundhouse.build.terminal import answer_console

from .session import client_of

__all__ = ["plan"]


def plan(
    context: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL|RECIPE",
            help="A model of the server's: its whole path there, demo:smollm2, a hub id, or shape:NAME; or a recipe.yaml of "
            "this machine. Several are shown side by side.",
        ),
    ],
    target: TargetOption = None,
    gpu: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|cpu|worker:HOST", help="One of the table (h200, l40s, …), the server's CPU, or a worker's machine."
        ),
    ] = None,
    tp: Annotated[int | None, typer.Option("--tp", help="Tensor parallelism.")] = None,
    weights: WeightsOption = None,
    group: GroupOption = None,
    kv: KvOption = None,
    max_batch: Annotated[int | None, typer.Option(help="Requests at once.")] = None,
    max_seq: Annotated[int | None, typer.Option(help="Tokens of the longest request.")] = None,
    request_tokens: Annotated[
        int | None, typer.Option(min=1, help="How long requests are; the longest possible when left out.")
    ] = None,
    price_per_gpu_hour: Annotated[
        float | None, typer.Option(min=0, help="In any currency: what a million output tokens cost is told in the same.")
    ] = None,
    settings: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Say what a recipe will take on the server's machines or on a GPU of the table, before anything is spent.

    Exit code 3 when a recipe is not legal; every number that can be computed is still printed.
    """
    client = client_of(context)
    from roundhouse.build.planner.report import PlanReport, json_of
    from roundhouse.build.planner.view import compare_view, plan_view

    from .recipes import keys_of, model_is_there, recipe_for_server

    keys = {"target": target, "tensor_parallel": tp, "weights": weights, "group_size": group, "kv_cache": kv}
    limits = {"max_batch_size": max_batch, "max_seq_len": max_seq}
    plans, names = [], []
    for source, device in product(sources, [*gpu] if gpu else [None]):
        recipe = recipe_for_server(source, settings, client.server, **keys, **limits)
        asked = {"recipe": keys_of(recipe), "device": device, "request_tokens": request_tokens}
        with model_is_there(recipe, client.server):
            plans.append(client.post("/plans", PlanReport, {**asked, "price_per_gpu_hour": price_per_gpu_hour}))
        names.append(f"{source} {plans[-1].gpu}" if gpu and len(gpu) > 1 else source)
    if json:
        print_json(json_of(plans))
    else:
        answer_console().print(plan_view(plans[0]) if len(plans) == 1 else compare_view(plans, names))
    if not all(made.legal for made in plans):
        raise typer.Exit(3)
