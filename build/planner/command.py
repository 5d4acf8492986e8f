"""`roundhouse plan`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from roundhouse.errors import UsageError

from ..command_options import HomeOption, JsonOption, home_at, print_json
from ..recipe_options import (
    SPREAD,
    EpOption,
    GroupOption,
    KvOption,
    PpOption,
    SetOption,
    TargetOption,
    TpOption,
    WeightsOption,
    recipe_for,
)
from ..terminal import answer_console

if TYPE_CHECKING:
    from ..home import Home
    from .decode import MeasuredRun
    from .plan import Plan

__all__ = ["MeasuredSource", "plan"]

MeasuredSource: TypeAlias = "Callable[[Home, Plan], Sequence[MeasuredRun]]"
"""What a home has measured of the engine that a plan is of, on its hardware. Who mounts the command gives it as the context's
``obj``: runs belong to a room above."""

_Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODEL|RECIPE",
        help="A model folder, a .gguf file, demo:smollm2, a hub id (its config only), shape:NAME for a shipped shape, "
        "or a recipe.yaml. Several are shown side by side.",
    ),
]
_MEMORY = "Memory for KV pages (give one)"
_RECIPE = "The recipe"


def plan(
    context: typer.Context,
    sources: _Sources = None,
    target: TargetOption = None,
    gpu: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|local|cpu", help="One of the table (h200, l40s, …), this machine's, or its CPU; may be repeated."
        ),
    ] = None,
    tp: TpOption = None,
    pp: PpOption = None,
    ep: EpOption = None,
    attention_dp: Annotated[
        bool | None, typer.Option("--attention-dp", help="Attention data parallelism.", rich_help_panel=SPREAD)
    ] = None,
    role: Annotated[str | None, typer.Option(help="aggregated, prefill or decode.", rich_help_panel=_RECIPE)] = None,
    weights: WeightsOption = None,
    scope: Annotated[
        str | None, typer.Option(help="What is quantized: all_linear or routed_experts.", rich_help_panel=_RECIPE)
    ] = None,
    group: GroupOption = None,
    kv: KvOption = None,
    kv_layout: Annotated[
        str | None, typer.Option(metavar="auto|plain|flashmla-fp8", help="How latents are kept.", rich_help_panel=_RECIPE)
    ] = None,
    page_tokens: Annotated[int | None, typer.Option(help="Tokens of a KV page.", rich_help_panel=_RECIPE)] = None,
    max_batch: Annotated[int | None, typer.Option(help="Requests at once.", rich_help_panel=_RECIPE)] = None,
    max_seq: Annotated[int | None, typer.Option(help="Tokens of the longest request.", rich_help_panel=_RECIPE)] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of one step.", rich_help_panel=_RECIPE)] = None,
    memory_fraction: Annotated[
        float | None, typer.Option(help="Of the memory free before loading, for weights and pages.", rich_help_panel=_MEMORY)
    ] = None,
    kv_bytes: Annotated[int | None, typer.Option(help="Bytes of pages on one GPU.", rich_help_panel=_MEMORY)] = None,
    kv_tokens: Annotated[int | None, typer.Option(help="Tokens that pages hold.", rich_help_panel=_MEMORY)] = None,
    request_tokens: Annotated[
        int | None, typer.Option(min=1, help="How long requests are; the longest possible when left out.")
    ] = None,
    price_per_gpu_hour: Annotated[
        float | None, typer.Option(min=0, help="In any currency: what a million output tokens cost is told in the same.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Instead of a plan: published numbers beside what the planner predicts.")
    ] = False,
    settings: SetOption = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Say what a recipe will take, whether it is legal and what to expect, before anything is spent.

    Exit code 3 when a recipe is not legal; every number that can be computed is still printed.
    """
    if published:
        _refuse_beside_published(context)
        _show_published(json=json)
        return
    if not sources:
        raise UsageError(
            "say what to plan", hint="`roundhouse plan demo:smollm2` or `roundhouse plan shape:llama-3.1-8b --gpu l40s`"
        )
    _check_price(price_per_gpu_hour, [])
    from ..models.sources import look_up
    from .gpus import hardware_called
    from .plan import make_plan

    measured: MeasuredSource = context.obj or _nothing_measured
    plans, names = [], []
    devices: list[str | None] = [*gpu] if gpu else [None]
    for source, device in product(sources, devices):
        recipe = recipe_for(
            source,
            settings,
            target=target,
            role=role,
            tensor_parallel=tp,
            pipeline_parallel=pp,
            expert_parallel=ep,
            attention_data_parallel=attention_dp,
            weights=weights,
            quantize_scope=scope,
            group_size=group,
            kv_cache=kv,
            kv_layout=kv_layout,
            page_tokens=page_tokens,
            max_batch_size=max_batch,
            max_seq_len=max_seq,
            max_num_tokens=max_tokens,
            memory_fraction=memory_fraction,
            kv_cache_bytes=kv_bytes,
            kv_cache_tokens=kv_tokens,
        )
        shape, inventory = look_up(recipe.model)
        longest = recipe.max_seq_len or shape.max_positions
        if request_tokens is not None and request_tokens > longest:
            raise UsageError(f"--request-tokens {request_tokens:,} is above the {longest:,} that {source} can be long")
        hardware = hardware_called(device, recipe)
        names.append(f"{source} {hardware.name}" if gpu and len(gpu) > 1 else source)
        make = partial(
            make_plan, recipe, shape, inventory, hardware, request_tokens=request_tokens, price_per_gpu_hour=price_per_gpu_hour
        )
        made = make()
        # What was measured is looked up by what the plan decided; only where there is something it is planned once more.
        if rows := measured(home_at(home), made):
            made = make(measured=rows)
        plans.append(made)
    _check_price(price_per_gpu_hour, plans)
    if json:
        from .report import json_of

        print_json(json_of(plans))
    else:
        from .view import compare_view, plan_view

        answer_console().print(plan_view(plans[0]) if len(plans) == 1 else compare_view(plans, names))
    if not all(made.legal for made in plans):
        raise typer.Exit(3)


def _nothing_measured(_home: Home, _plan: Plan) -> Sequence[MeasuredRun]:
    return ()


def _refuse_beside_published(context: typer.Context) -> None:
    """Published numbers are of their own models, GPUs and recipes: nothing about them can be chosen."""
    others = [parameter for parameter in context.command.params if parameter.name not in ("published", "json")]
    given = [
        "MODEL" if parameter.param_type_name == "argument" else parameter.opts[0]
        for parameter in others
        if (source := context.get_parameter_source(parameter.name or "")) is not None and source.name != "DEFAULT"
    ]
    if given:
        raise UsageError(
            f"--published takes no {', no '.join(given)}",
            hint="It shows the published numbers of its own models, all of them; only --json goes with it.",
        )


def _check_price(price: float | None, plans: Sequence[Plan]) -> None:
    """Refuse a price that is no number, or one from which none can be computed."""
    prices = [price, *(row.price_per_million_tokens for made in plans for row in made.decode)]
    if not all(math.isfinite(each) for each in prices if each is not None):
        raise UsageError(f"--price-per-gpu-hour {price} is no price", hint="Give what one GPU costs for an hour, such as 2.50.")


def _show_published(*, json: bool) -> None:
    from .published import published_rows

    rows = published_rows()
    if json:
        print_json([row.model_dump(mode="json") for row in rows])
        return
    from .published_view import published_table

    answer_console().print(published_table(rows))
