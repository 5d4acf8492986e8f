"""Recipes as text that people edit, and back."""

from __future__ import annotations

from typing import Any

import yaml

from roundhouse.build.recipe import Recipe, recipe_from
from roundhouse.build.recipe_yaml import parse_yaml
from roundhouse.errors import RecipeError

__all__ = ["given_keys", "recipe_from_text", "recipe_text"]

_LONGEST = 16_384


def given_keys(recipe: Recipe) -> dict[str, Any]:
    """What a recipe says itself, in JSON's types; what it leaves open is left out."""
    keys: dict[str, Any] = recipe.model_dump(mode="json", exclude_unset=True)
    return keys


def recipe_text(recipe: Recipe) -> str:
    """A recipe as YAML, with the keys that it gives, in the order of the documentation."""
    given = given_keys(recipe)
    ordered = {key: given[key] for key in Recipe.model_fields if key in given}
    return yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True, width=100)


def recipe_from_text(text: str) -> Recipe:
    """Read a recipe.

    Raises:
        RecipeError: it is too long, no YAML, no mapping, or no recipe.
    """
    if len(text) > _LONGEST:
        raise RecipeError(f"the recipe is longer than {_LONGEST:,} characters")
    try:
        keys = parse_yaml(text)
    except yaml.YAMLError as error:
        raise RecipeError(f"this is no YAML: {_in_one_line(error)}") from None
    if not isinstance(keys, dict):
        raise RecipeError("a recipe is a mapping of keys to values", hint="The smallest is `model: FOLDER`.")
    return recipe_from({str(key): value for key, value in keys.items()})


def _in_one_line(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem or 'it cannot be read'}, in line {error.problem_mark.line + 1}"
    return " ".join(str(error).split())[:300]
