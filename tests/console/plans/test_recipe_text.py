"""Recipes as text that people edit."""

from __future__ import annotations

import pytest

from roundhouse.build.recipe import recipe_from
from roundhouse.console.plans.recipe_text import recipe_from_text, recipe_text
from roundhouse.errors import RecipeError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a mapping of keys to values"),
        ("[1, 2]", "a mapping of keys to values"),
        ("model: [", "this is no YAML: .* in line"),
        ("model: a\nmodel: b", "stands twice, in line 2"),
        ("model: m\nweigths: fp8", "did you mean 'weights'"),
        ("weights: fp8", "the key 'model' is missing"),
        ("1: 2\nmodel: m", "unknown key '1'"),
        ("model: " + "x" * 20_000, "longer than 16,384 characters"),
        ("a: &a [1]\nmodel: " + "[" * 200 + "]" * 200, "too deep"),
        ("model: m\nseed: 2024-99-99", "a value that cannot be: month"),
    ],
)
def test_what_is_no_recipe_is_told_in_words(text: str, said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        recipe_from_text(text)


def test_only_what_was_given_is_written_in_the_order_of_the_documentation() -> None:
    recipe = recipe_from({"guard": "off", "weights": "fp8", "model": "demo:smollm2"})
    assert recipe_text(recipe) == "model: demo:smollm2\nweights: fp8\nguard: 'off'\n"
