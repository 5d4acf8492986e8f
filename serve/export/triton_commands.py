"""`roundhouse export triton` and `roundhouse export trtllm-serve`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at, print_json
from roundhouse.build.commands import EngineArgument
from roundhouse.build.extras import require_extra

from ..engine_options import with_engine_options

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine

    from ..settings import Overrides
    from ..trtllm_arguments import LlmPlace
    from .triton import Exported

__all__ = ["add_triton_commands"]

_Output = Annotated[Path, typer.Option("--output", "-o", help="Folder to write to; made when it is not there.")]
_REPOSITORY, _HERE = Path("models"), Path()
_Folder = Annotated[str | None, typer.Option(help="The engine's folder where it will run, if that is not here.")]
_GuardMetrics = Annotated[
    str | None, typer.Option(help="Where the page check in TensorRT-LLM answers /ready and /metrics. Default: 0.0.0.0:8003.")
]
_GuardHome = Annotated[str | None, typer.Option(help="Home there that integrity events are written to. Default: none are.")]
_GuardLibrary = Annotated[str | None, typer.Option(help="The CUDA page guard there. Default: plain torch operations compare.")]
_METRICS = "0.0.0.0:8003"


def add_triton_commands(export: typer.Typer) -> None:
    """Mount them in the group `export`."""
    export.command("triton")(triton)
    export.command("trtllm-serve")(trtllm_serve)


@with_engine_options
def triton(
    engine: EngineArgument,
    output: _Output = _REPOSITORY,
    name: Annotated[str | None, typer.Option(help="What the model is served as. Default: the engine's name.")] = None,
    engine_folder: _Folder = None,
    python: Annotated[
        str | None, typer.Option(help="Interpreter of the engine process, for targets that have one. Default: this one.")
    ] = None,
    guard_metrics: _GuardMetrics = None,
    guard_home: _GuardHome = None,
    guard_library: _GuardLibrary = None,
    home: HomeOption = None,
    json: JsonOption = False,
    **engine_keys: Any,
) -> None:
    """Write a Triton model repository for an engine: TensorRT-LLM's `llmapi` model, or the one that `serve` runs."""
    require_extra("serve")
    from ..settings import overrides_of
    from .listening import require_useful
    from .triton import export_triton

    found = _find(engine, home)
    overrides = overrides_of(**engine_keys)
    require_useful(found, overrides.guard or found.manifest.recipe.guard, {"--python": python})
    place = _place(found, overrides, engine_folder, guard_metrics, guard_home, guard_library)
    _show(export_triton(found, output, place, overrides=overrides, name=name, python=python or sys.executable), json=json)


@with_engine_options
def trtllm_serve(
    engine: EngineArgument,
    output: _Output = _HERE,
    host: Annotated[str, typer.Option(help="Address that trtllm-serve listens on.")] = "0.0.0.0",
    port: Annotated[int, typer.Option(help="Port that trtllm-serve listens on.")] = 8000,
    engine_folder: _Folder = None,
    guard_metrics: _GuardMetrics = None,
    guard_home: _GuardHome = None,
    guard_library: _GuardLibrary = None,
    home: HomeOption = None,
    json: JsonOption = False,
    **engine_keys: Any,
) -> None:
    """Write an engine's arguments for TensorRT-LLM's own server, and tell the command that starts it."""
    from ..settings import overrides_of
    from .triton import export_trtllm_serve

    found = _find(engine, home)
    overrides = overrides_of(**engine_keys)
    place = _place(found, overrides, engine_folder, guard_metrics, guard_home, guard_library)
    _show(export_trtllm_serve(found, output, place, overrides=overrides, host=host, port=port), json=json)


def _find(engine: str, home: Path | None) -> Engine:
    from roundhouse.build.store import EngineStore

    return EngineStore(home_at(home)).find(engine)


def _place(
    engine: Engine, overrides: Overrides, folder: str | None, metrics: str | None, home: str | None, library: str | None
) -> LlmPlace:
    from .listening import require_useful
    from .triton import place_of

    given = {"--guard-metrics": metrics, "--guard-home": home, "--guard-library": library}
    require_useful(engine, overrides.guard or engine.manifest.recipe.guard, given)
    paths = [None if path is None else PurePosixPath(path) for path in (folder, home, library)]
    return place_of(engine, folder=paths[0], metrics=_METRICS if metrics is None else metrics, home=paths[1], library=paths[2])


def _show(done: Exported, *, json: bool) -> None:
    if json:
        print_json({**asdict(done), "written": str(done.written)})
        return
    typer.echo(f"{done.written}: {done.name}, guard {done.guard}")
    typer.echo(f"Start: {done.start}")
    for note in done.notes:
        typer.echo(f"  {note}")
