"""Recipes for a console elsewhere: read and checked here; what they name lies there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundhouse.build.models.shipped import SHAPE_PREFIX
from roundhouse.build.recipe_options import recipe_for
from roundhouse.errors import ModelError, UsageError

if TYPE_CHECKING:
    from roundhouse.build.recipe import Recipe

__all__ = ["keys_of", "model_is_there", "recipe_for_server"]

_PUBLIC = ("demo:", SHAPE_PREFIX)


def recipe_for_server(source: str, settings: list[str] | None, server: str, **keys: str | float | bool | None) -> Recipe:
    """The recipe of a command line: a recipe file of this machine or a model of the server's, with the given keys on top.

    Raises:
        RecipeError: an unknown key or a wrong value.
        UsageError: it names a file by a path that means nothing on another machine.
    """
    recipe = recipe_for(source, settings, **keys)
    for what, path in (("model", recipe.model), ("calibration text", recipe.calibration.text)):
        if path is not None and _is_relative_file(str(path)):
            raise UsageError(
                f"the {what} {path} is a path of this machine; the console at {server} reads files of its own",
                hint="Copy it there, and give the whole path that it has there.",
            )
    return recipe


def keys_of(recipe: Recipe) -> dict[str, Any]:
    """What a recipe says itself, in JSON's types."""
    keys: dict[str, Any] = recipe.model_dump(mode="json", exclude_unset=True)
    return keys


@contextmanager
def model_is_there(recipe: Recipe, server: str) -> Iterator[None]:
    """Where the console finds fault with a model that is named by a path, have the error say whose path it is.

    Raises:
        UsageError: as the console said it.
        ModelError: likewise.
    """
    try:
        yield
    except (UsageError, ModelError) as error:
        if recipe.model in error.message and Path(recipe.model).is_absolute():
            whose = f"The path is one of the console's machine ({server}), not of this one."
            error.hint = f"{error.hint} {whose}" if error.hint else whose
        raise


def _is_relative_file(source: str) -> bool:
    """Whether this means a file below the working directory, which another machine does not have."""
    if source.startswith(_PUBLIC):
        return False
    path = Path(source)
    return source.startswith("~") or (not path.is_absolute() and (source.startswith(".") or path.exists()))
