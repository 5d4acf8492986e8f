"""From a command line to a recipe: a recipe file or a model, with the given keys on top."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from roundhouse.errors import RecipeError

from .merging import merged
from .recipe import Recipe, read_recipe, recipe_from
from .recipe_yaml import parse_yaml

__all__ = [
    "SPREAD",
    "BuildWeightsOption",
    "EpOption",
    "GroupOption",
    "KvOption",
    "NameOption",
    "PpOption",
    "SetOption",
    "TargetOption",
    "TpOption",
    "WeightsOption",
    "recipe_for",
]

SPREAD = "How the model is spread"
"""The panel of a command's help for these options."""

SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other recipe key; may be repeated.")
]
NameOption = Annotated[str | None, typer.Option("--name", help="What to call the engine.")]
WeightsOption = Annotated[str | None, typer.Option("--weights", help="bf16, fp8, int4_awq, w4a8_awq, nvfp4 or as_is.")]
BuildWeightsOption = Annotated[
    str | None, typer.Option("--weights", help="bf16, fp8, int4_awq or as_is; others can be planned, and are not built yet.")
]
GroupOption = Annotated[str | None, typer.Option("--group", metavar="auto|N", help="INT4 group size.")]
KvOption = Annotated[str | None, typer.Option("--kv", help="bf16 or fp8.")]
TargetOption = Annotated[str | None, typer.Option("--target", help="torch, tensorrt or trtllm-pytorch.")]
TpOption = Annotated[int | None, typer.Option("--tp", help="Tensor parallelism.", rich_help_panel=SPREAD)]
PpOption = Annotated[int | None, typer.Option("--pp", help="Pipeline stages.", rich_help_panel=SPREAD)]
EpOption = Annotated[int | None, typer.Option("--ep", help="Expert parallelism, within --tp.", rich_help_panel=SPREAD)]


def recipe_for(source: str, settings: list[str] | None, **keys: str | float | bool | None) -> Recipe:
    """The recipe of a command line: a recipe file or a model, with the given keys on top.

    Raises:
        RecipeError: an unknown key or a wrong value.
    """
    given = {key: _value(key, value) if isinstance(value, str) else value for key, value in keys.items() if value is not None}
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals:
            raise RecipeError(f"--set {setting}: write KEY=VALUE")
        outer, dot, inner = key.partition(".")  # calibration.samples=8
        given = merged(given, {outer: {inner: _value(key, value)}} if dot else {key: _value(key, value)})
    is_file = source.endswith((".yaml", ".yml"))
    base: dict[str, Any] = read_recipe(Path(source)).model_dump(exclude_unset=True) if is_file else {"model": source}
    return recipe_from(merged(base, given), where="command line" if given else source)


def _value(key: str, text: str) -> Any:
    try:
        return parse_yaml(text)
    except yaml.YAMLError:
        raise RecipeError(f"{key}: {reprlib.repr(text)} is not a value") from None
