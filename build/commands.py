"""`roundhouse plan`, `build` and `engines …`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from roundhouse.errors import RecipeError

from .home import Home, default_home
from .recipe import Recipe, parse_yaml, read_recipe, recipe_from
from .terminal import answer_console

if TYPE_CHECKING:
    from .engine import Engine
    from .store import EngineStore
    from .terminal import BuildTerminal

__all__ = [
    "EngineArgument",
    "HomeOption",
    "JsonOption",
    "add_commands",
    "home_at",
    "print_json",
    "progress_terminal",
    "recipe_for",
]

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Where engines are kept (default: $ROUNDHOUSE_HOME or the user data folder).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer as JSON on standard output.")]

_Source = Annotated[
    str, typer.Argument(metavar="MODEL|RECIPE", help="A model folder, a .gguf file, demo:smollm2, a hub id, or a recipe.yaml.")
]
_Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other recipe key; may be repeated.")]
_Name = Annotated[str | None, typer.Option(help="What to call the engine.")]
_Weights = Annotated[str | None, typer.Option(help="bf16, fp8 or int4_awq.")]
_Group = Annotated[str | None, typer.Option(help="INT4 group size, or auto.")]
_Kv = Annotated[str | None, typer.Option(help="bf16 or fp8.")]
_Target = Annotated[str | None, typer.Option(help="torch, tensorrt or trtllm-pytorch.")]


def add_commands(app: typer.Typer) -> None:
    """Mount this room's commands."""
    app.command()(plan)
    app.command()(build)
    app.add_typer(engines, name="engines")


def plan(
    source: _Source,
    name: _Name = None,
    weights: _Weights = None,
    group: _Group = None,
    kv: _Kv = None,
    target: _Target = None,
    settings: _Set = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Say what a recipe will take and whether it is legal, before anything is spent.

    Exit code 3 when it is not legal; every number that can be computed is still printed.
    """
    from .engine_view import plan_table
    from .pipeline import plan_recipe

    recipe = recipe_for(source, settings, name=name, weights=weights, group_size=group, kv_cache=kv, target=target)
    with progress_terminal() as terminal:
        made = plan_recipe(recipe, home_at(home), terminal)
    if json:
        print_json({**made.model_dump(mode="json"), "legal": made.legal})
    else:
        answer_console().print(plan_table(recipe, made))
    if not made.legal:
        raise typer.Exit(3)


def build(
    source: _Source,
    name: _Name = None,
    weights: _Weights = None,
    group: _Group = None,
    kv: _Kv = None,
    target: _Target = None,
    settings: _Set = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Plan, calibrate, quantize, verify and compile a recipe into an engine folder.

    The same recipe is not built twice.
    """
    from .engine_view import engine_summary
    from .extras import require_extra
    from .pipeline import build as run_build

    recipe = recipe_for(source, settings, name=name, weights=weights, group_size=group, kv_cache=kv, target=target)
    require_extra("build")
    with progress_terminal() as terminal:
        built = run_build(recipe, home_at(home), terminal)
    if json:
        print_json({"new": built.new, "folder": str(built.engine.folder), **built.engine.manifest.model_dump(mode="json")})
        return
    console = answer_console()
    if not built.new:
        console.print("This engine was there already; nothing was built.")
    console.print(engine_summary(built.engine))
    console.print(f"Next: roundhouse serve {built.engine.manifest.name}", markup=False)


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


def recipe_for(source: str, settings: list[str] | None, **keys: str | None) -> Recipe:
    """The recipe of a command line: a recipe file or a model, with the given keys on top.

    Raises:
        RecipeError: an unknown key or a wrong value.
    """
    given = {key: _value(key, value) for key, value in keys.items() if value is not None}
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals:
            raise RecipeError(f"--set {setting}: write KEY=VALUE")
        outer, dot, inner = key.partition(".")  # calibration.samples=8
        given = _merged(given, {outer: {inner: _value(key, value)}} if dot else {key: _value(key, value)})
    is_file = source.endswith((".yaml", ".yml"))
    base: dict[str, Any] = read_recipe(Path(source)).model_dump(exclude_unset=True) if is_file else {"model": source}
    return recipe_from(_merged(base, given), where="command line" if given else source)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """``base`` with ``changes`` on top; a nested mapping is merged where both are one, and replaced where not."""
    merged = dict(base)
    for key, value in changes.items():
        before = base.get(key)
        merged[key] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def _value(key: str, text: str) -> Any:
    import yaml

    try:
        return parse_yaml(text)
    except yaml.YAMLError:
        raise RecipeError(f"{key}: {text!r} is not a value") from None


def print_json(value: object) -> None:
    """Write one JSON value, and nothing else, to standard output."""
    import json

    typer.echo(json.dumps(value, indent=2, default=str))


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


def progress_terminal() -> BuildTerminal:
    """A terminal for a build's events, on standard error: standard output is the answer."""
    from .terminal import BuildTerminal

    # The stream itself, not `stderr=True`: libraries are silenced by redirecting sys.stderr while we show progress.
    return BuildTerminal(Console(file=sys.stderr))


def home_at(given: Path | None) -> Home:
    """The home folder of a command line."""
    return Home(given.expanduser().resolve()) if given else default_home()


def _store(home: Path | None) -> EngineStore:
    from .store import EngineStore

    return EngineStore(home_at(home))
