"""`roundhouse --server URL deployments start`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from roundhouse.build.command_options import JsonOption
from roundhouse.build.terminal import answer_console
from roundhouse.errors import UsageError

from .options import EngineArgument, FollowOption
from .session import client_of

__all__ = ["start_deployment"]

_Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]
_TRITON = "A Triton server that runs already"


def start_deployment(
    context: typer.Context,
    engine: EngineArgument,
    name: Annotated[str | None, typer.Option(help="What clients call the model. Default: the engine's name.")] = None,
    on: Annotated[
        str | None, typer.Option(metavar="HOST", help="Where. Default: a host that has the engine and a live worker.")
    ] = None,
    address: Annotated[str, typer.Option(help="Address to listen on there.")] = "127.0.0.1",
    http: _Port = 0,
    grpc: _Port = 0,
    metrics: _Port = 0,
    openai: _Port = 0,
    override: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="What to change of the engine's recipe, such as max_batch_size; may be repeated."
        ),
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Have the OpenAI front ask for the key in this file.")
    ] = None,
    triton_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Its HTTP endpoint: the engine is loaded there.", rich_help_panel=_TRITON)
    ] = None,
    triton_grpc: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Its gRPC endpoint.", rich_help_panel=_TRITON)
    ] = None,
    triton_metrics: Annotated[str | None, typer.Option(metavar="URL", help="Its metrics.", rich_help_panel=_TRITON)] = None,
    follow: FollowOption = False,
    json: JsonOption = False,
) -> None:
    """Have an engine served: on a Triton server of its own, or loaded into one that runs already."""
    client = client_of(context)
    from ..deployments.records import DeploymentDetail
    from ..deployments.requests import StartedDeployment
    from .finding import find_engine
    from .telling import print_record, tell_queued
    from .views import deployment_view

    found = find_engine(client, engine)
    settings: dict[str, Any] = {
        "kind": "remote" if triton_url else "local",
        "engine_id": found.id,
        "name": name or found.name,
        "address": address,
        "http": http,
        "grpc": grpc,
        "metrics": metrics,
        "openai": openai,
        "overrides": _overrides(override or []),
        "triton_url": triton_url,
        "triton_grpc": triton_grpc,
        "triton_metrics": triton_metrics,
        "keyed": api_key_file is not None,
    }
    key = None if api_key_file is None else _secret(api_key_file)
    started = client.post("/deployments", StartedDeployment, {"settings": settings, "host": on, "api_key": key})
    if not follow:
        tell_queued(client, [started.job_id], json=json, answer=started)
        return
    from .following import follow_job

    follow_job(client, started.job_id)
    ready = client.get(f"/deployments/{started.deployment_id}", DeploymentDetail)
    if json:
        print_record(ready)
    else:
        answer_console().print(deployment_view(ready))


def _overrides(given: list[str]) -> dict[str, Any]:
    from yaml import YAMLError

    from roundhouse.build.recipe_yaml import parse_yaml

    values: dict[str, Any] = {}
    for setting in given:
        key, equals, value = setting.partition("=")
        try:
            values[key] = parse_yaml(value)
        except YAMLError:
            equals = ""
        if not equals:
            raise UsageError(f"--override {setting}: write KEY=VALUE")
    return values


def _secret(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the key file {file} cannot be read: {error}") from None
