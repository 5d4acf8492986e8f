"""`roundhouse build` and `engines …`; `plan` has a module of its own in the planner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command_options import HomeOption, JsonOption, home_at, print_json, progress_terminal
from .planner.command import MeasuredSource, plan
from .recipe_options import (
    BuildWeightsOption,
    EpOption,
    GroupOption,
    KvOption,
    NameOption,
    PpOption,
    SetOption,
    TargetOption,
    TpOption,
    recipe_for,
)
from .terminal import answer_console
from .trtllm.commands import trtllm

if TYPE_CHECKING:
    from .engine import Engine
    from .store import EngineStore

__all__ = ["EngineArgument", "add_commands"]

_Source = Annotated[
    str, typer.Argument(metavar="MODEL|RECIPE", help="A model folder, a .gguf file, demo:smollm2, a hub id, or a recipe.yaml.")
]

_Gpu = Annotated[
    str | None, typer.Option("--gpu", help="The GPU that it shall run on; engines of trtllm-pytorch are built on any machine.")
]


def add_commands(app: typer.Typer, *, measured: MeasuredSource | None = None) -> None:
    """Mount this room's commands.

    Args:
        app: of the command line.
        measured: tells plans what was measured of their engines.
    """
    app.command(context_settings={"obj": measured})(plan)
    app.command()(build)
    app.add_typer(engines, name="engines")
    app.add_typer(trtllm, name="trtllm")


def build(
    source: _Source,
    name: NameOption = None,
    weights: BuildWeightsOption = None,
    group: GroupOption = None,
    kv: KvOption = None,
    target: TargetOption = None,
    tp: TpOption = None,
    pp: PpOption = None,
    ep: EpOption = None,
    gpu: _Gpu = None,
    settings: SetOption = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Plan, calibrate, quantize, verify and compile a recipe into an engine folder.

    The same recipe is not built twice.
    """
    from .engine_view import engine_summary
    from .extras import require_extra
    from .pipeline import build as run_build
    from .planner.gpus import hardware_called

    recipe = recipe_for(
        source,
        settings,
        name=name,
        weights=weights,
        group_size=group,
        kv_cache=kv,
        target=target,
        tensor_parallel=tp,
        pipeline_parallel=pp,
        expert_parallel=ep,
    )
    require_extra("build")
    with progress_terminal() as terminal:
        built = run_build(recipe, home_at(home), terminal, hardware=hardware_called(gpu) if gpu else None)
    if json:
        print_json({"new": built.new, "folder": str(built.engine.folder), **built.engine.manifest.model_dump(mode="json")})
        return
    console = answer_console()
    if not built.new:
        console.print("This engine was there already; nothing was built.")
    console.print(engine_summary(built.engine))
    next_one = "export triton" if recipe.target == "trtllm-pytorch" else "serve"
    console.print(f"Next: roundhouse {next_one} {built.engine.manifest.name}", markup=False)


engines = typer.Typer(help="List, show, verify and remove engines.", no_args_is_help=True)

EngineArgument = Annotated[
    str, typer.Argument(metavar="ENGINE", help="An engine's id, the start of it, its name, or its folder.")
]


@engines.command("list")
def list_engines(home: HomeOption = None, json: JsonOption = False) -> None:
    """List the engines of this home, newest first; damaged ones are named."""
    from .engine_view import engines_table

    store = _store(home)
    found, damaged = list(store), store.damaged()
    if json:
        print_json(
            {
                "engines": [_brief(engine) for engine in found],
                "damaged": [{"id": name, "problem": error.message} for name, error in damaged],
            }
        )
        return
    console = answer_console()
    if found:
        console.print(engines_table(found))
    elif not damaged:
        console.print("No engines yet. `roundhouse build demo:smollm2` makes one.")
    for _, error in damaged:
        console.print(f"! {error}", style="yellow", markup=False)


@engines.command("show")
def show_engine(engine: EngineArgument, home: HomeOption = None, json: JsonOption = False) -> None:
    """Show what an engine is, what it was made from, and what became of each module."""
    from .engine_view import engine_summary, modules_table

    found = _store(home).find(engine)
    if json:
        print_json({"folder": str(found.folder), **found.manifest.model_dump(mode="json")})
        return
    answer_console().print(engine_summary(found), modules_table(found))


@engines.command("verify")
def verify_engine(engine: EngineArgument, home: HomeOption = None, json: JsonOption = False) -> None:
    """Hash every file of an engine against its manifest."""
    found = _store(home).find(engine)
    found.verify()
    if json:
        print_json({"id": found.manifest.id, "files": len(found.manifest.files), "intact": True})
    else:
        answer_console().print(f"{found.manifest.id}: {len(found.manifest.files)} files are what the manifest says.")


@engines.command("remove")
def remove_engine(
    engine: EngineArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Delete an engine and its files; a damaged one needs its whole id."""
    store = _store(home)
    folder = store.locate(engine)
    if not yes and not typer.confirm(f"Delete {folder}?", err=True):
        raise typer.Abort
    store.remove(folder)
    if json:
        print_json({"removed": folder.name})
    else:
        answer_console().print(f"Removed {folder.name}.", markup=False)


def _brief(engine: Engine) -> dict[str, object]:
    manifest = engine.manifest
    return {
        "id": manifest.id,
        "name": manifest.name,
        "created": manifest.created,
        "target": manifest.recipe.target,
        "weights": manifest.recipe.weights,
        "kv_cache": manifest.recipe.kv_cache,
        "bytes": engine.total_bytes,
        "folder": str(engine.folder),
    }


def _store(home: Path | None) -> EngineStore:
    from .store import EngineStore

    return EngineStore(home_at(home))
