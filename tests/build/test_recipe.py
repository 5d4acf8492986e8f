from __future__ import annotations

from pathlib import Path

import pytest

from roundhouse.build.recipe import Recipe, read_recipe, recipe_from
from roundhouse.errors import RecipeError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    return path


def test_a_recipe_file_is_read_and_frozen(tmp_path: Path) -> None:
    recipe = read_recipe(write(tmp_path, "model: some/folder\nweights: fp8\ncalibration: {samples: 2}\n"))
    assert (recipe.model, recipe.weights, recipe.calibration.samples) == ("some/folder", "fp8", 2)
    with pytest.raises(ValueError, match="frozen"):
        recipe.weights = "bf16"  # type: ignore[misc]  # that is the point


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"model": "m", "kv_cach": "fp8"}, r"unknown key 'kv_cach' \(did you mean 'kv_cache'\?\)"),
        ({"model": "m", "memory_fracton": 0.5}, r"did you mean 'memory_fraction'"),
        ({"model": "m", "calibration": {"sample": 1}}, r"unknown key 'calibration.sample' \(did you mean 'samples'\?\)"),
        ({"model": "m", "zzz": 1}, r"unknown key 'zzz'$"),
        ({"model": ""}, "model: "),
        ({"model": "m", "name": "a/b"}, "name: .*got 'a/b'"),
        ({"model": "m", "seed": -1}, "seed"),
        ({"model": "m", "seed": 10**23}, "seed"),
        ({}, "the key 'model' is missing"),
        ({"model": "m", "weights": "int3"}, "weights: 'int3' is not one of .* did you mean 'int4_awq'"),
        ({"model": "m", "page_tokens": 0}, "page_tokens: .*got 0"),
        ({"model": "m", "group_size": -1}, "group_size -1"),
        ({"model": "m", "guard_sample": 0.5}, "guard_sample belongs to"),
        ({"model": "m", "memory_fraction": 1.5}, "memory_fraction"),
        ({"model": "m", "memory_fraction": 0.5, "kv_cache_tokens": 10}, "memory_fraction and kv_cache_tokens exclude"),
    ],
)
def test_what_does_not_fit_is_named(data: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        recipe_from(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: m\nmodel: n\n", "the key 'model' stands twice"),
        ("model: m\n? [1]\n: 2\n", r"\[1\] cannot be a key"),
        ("model: m\n1: 2\n", "1: Keys should be strings"),
        ("model: m\ncalibration: 3\n", r"calibration: .*\(got 3\)"),
        ("!!python/object:os.system x\n", "cannot be read"),
        ("- model\n", "not a mapping"),
        ("model: [\n", "cannot be read"),
        ("", "not a mapping"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        read_recipe(write(tmp_path, text))


def test_words_that_yaml_1_1_takes_for_booleans_are_words(tmp_path: Path) -> None:
    recipe = read_recipe(write(tmp_path, "model: m\nguard: off\nname: on\nattention_data_parallel: true\n"))
    assert (recipe.guard, recipe.name, recipe.attention_data_parallel) == ("off", "on", True)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"nowhere\.yaml does not exist"):
        read_recipe(tmp_path / "nowhere.yaml")


def test_every_default_recipe_key_survives_a_round_trip() -> None:
    recipe = Recipe(model="m")
    assert recipe_from(recipe.model_dump()) == recipe
