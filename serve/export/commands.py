"""`roundhouse export …`: files that run an engine elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roundhouse.build.command_options import HomeOption, home_at
from roundhouse.build.commands import EngineArgument

__all__ = ["export_commands"]

_Output = Annotated[Path | None, typer.Option("--output", help="File to write; standard output when left out.")]
_Image = Annotated[
    str | None, typer.Option(help="Image to run: default roundhouse:cpu or roundhouse:gpu, by the engine's target.")
]
_GpusPerNode = Annotated[int, typer.Option(min=1, help="GPUs of one machine; an engine that takes more is refused.")]


def export_commands() -> typer.Typer:
    """The group."""
    group = typer.Typer(help="Write what runs an engine elsewhere: Compose, Kubernetes, Grafana.", no_args_is_help=True)
    group.command("compose")(compose)
    group.command("kubernetes")(kubernetes)
    group.command("dashboard")(dashboard)
    return group


def compose(
    engine: EngineArgument,
    image: _Image = None,
    gpus_per_node: _GpusPerNode = 8,
    output: _Output = None,
    home: HomeOption = None,
) -> None:
    """Write a Compose file that serves an engine from its folder on this machine."""
    from roundhouse.build.store import EngineStore

    from .compose import compose_text
    from .container import container_of

    found = EngineStore(home_at(home)).find(engine)
    container = container_of(found, image=image, gpus_per_node=gpus_per_node)
    _write(compose_text(container, found.folder.resolve()), output)


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
    gpus_per_node: _GpusPerNode = 8,
    output: _Output = None,
    home: HomeOption = None,
) -> None:
    """Write Kubernetes manifests that serve an engine on one node, with probes, metrics and a dashboard."""
    from roundhouse.build.store import EngineStore

    from .container import container_of
    from .kubernetes import Manifests, resource_name

    found = EngineStore(home_at(home)).find(engine)
    container = container_of(found, image=image, gpus_per_node=gpus_per_node)
    called = name or resource_name(container.name)
    _write(Manifests(container, called, namespace, claim).text(found.folder.resolve()), output)


def dashboard(output: _Output = None) -> None:
    """Write a Grafana dashboard of what engines count, to be imported."""
    from .dashboard import dashboard_text

    _write(dashboard_text(), output)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(text, nl=False)
        return
    output.write_text(text, encoding="utf-8")
    typer.echo(f"written: {output}", err=True)
