"""`roundhouse export …`: files that run an engine elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from roundhouse.build.command_options import HomeOption, home_at
from roundhouse.build.commands import EngineArgument

from ..engine_options import with_engine_options
from .output import require_new_file, write_new
from .triton_commands import add_triton_commands

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roundhouse.build.engine import Engine

    from .choosing import Server
    from .container import EngineContainer

__all__ = ["export_commands"]

_Output = Annotated[Path | None, typer.Option("--output", help="New file to write; standard output when left out.")]
_Image = Annotated[
    str | None, typer.Option(help="Image to run: default roundhouse:cpu or roundhouse:gpu, by the engine's target.")
]
_Server = Annotated[
    Literal["triton", "trtllm-serve"], typer.Option(help="triton, or trtllm-serve for engines of trtllm-pytorch.")
]
_GpusPerNode = Annotated[int, typer.Option(min=1, help="GPUs of one machine; an engine that takes more is refused.")]


def export_commands() -> typer.Typer:
    """The group."""
    group = typer.Typer(help="Write what runs an engine elsewhere.", no_args_is_help=True)
    group.command("compose")(compose)
    group.command("kubernetes")(kubernetes)
    group.command("dashboard")(dashboard)
    add_triton_commands(group)
    return group


@with_engine_options
def compose(
    engine: EngineArgument,
    image: _Image = None,
    server: _Server = "triton",
    gpus_per_node: _GpusPerNode = 8,
    output: _Output = None,
    home: HomeOption = None,
    **engine_keys: Any,
) -> None:
    """Write a Compose file that serves an engine from its folder on this machine."""
    from .compose import compose_text

    _require_place(output)
    found = _find(engine, home)
    container = _container(found, image, server, gpus_per_node, engine_keys)
    _write(compose_text(container, found.folder.resolve()), output)


@with_engine_options
def kubernetes(
    engine: EngineArgument,
    name: Annotated[
        str | None, typer.Option(help="Of the deployment; default: the engine's, as far as Kubernetes takes it.")
    ] = None,
    namespace: Annotated[str | None, typer.Option(help="Where it goes; left to kubectl when left out.")] = None,
    claim: Annotated[
        str | None, typer.Option(help="An existing volume claim with a home in it; one is made when left out.")
    ] = None,
    image: _Image = None,
    server: _Server = "triton",
    gpus_per_node: _GpusPerNode = 8,
    output: _Output = None,
    home: HomeOption = None,
    **engine_keys: Any,
) -> None:
    """Write Kubernetes manifests that serve an engine on one node, with probes, metrics and a dashboard."""
    from .kubernetes import Manifests, resource_name

    _require_place(output)
    found = _find(engine, home)
    container = _container(found, image, server, gpus_per_node, engine_keys)
    called = name or resource_name(container.name)
    _write(Manifests(container, called, namespace, claim).text(found.folder.resolve()), output)


def dashboard(output: _Output = None) -> None:
    """Write a Grafana dashboard of what engines count, to be imported."""
    from .dashboard import dashboard_text

    _write(dashboard_text(), output)


def _require_place(output: Path | None) -> None:
    """Refuse a file that cannot be made before anything is read."""
    if output is not None:
        require_new_file(output)


def _find(engine: str, home: Path | None) -> Engine:
    from roundhouse.build.store import EngineStore

    return EngineStore(home_at(home)).find(engine)


def _container(
    engine: Engine, image: str | None, server: Server, gpus_per_node: int, engine_keys: Mapping[str, Any]
) -> EngineContainer:
    from ..settings import overrides_of
    from .choosing import container_of

    overrides = overrides_of(**engine_keys)
    return container_of(engine, image=image, overrides=overrides, server=server, gpus_per_node=gpus_per_node)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(text, nl=False)
        return
    write_new(output, text)
    typer.echo(f"written: {output}", err=True)
