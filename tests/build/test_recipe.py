from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from roundhouse.build.recipe import Calibration, Recipe, read_recipe, recipe_from
from roundhouse.build.recipe_yaml import parse_yaml
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
        ({"model": "m", "group_size": 10**400}, "group_size: nothing is so large"),
        ({"model": "m", "kv_cache_bytes": str(10**400)}, "kv_cache_bytes: nothing is so large"),
        ({"model": "m", "memory_fraction": float("nan")}, "memory_fraction: .*finite"),
        ({"model": "m", "target_options": {"a": [float("inf")]}}, "target_options.*finite"),
        ({"model": "m", "target_options": {"a": b"\xff"}}, "target_options.a: .*JSON"),
        ({"model": "m", "guard_sample": 0.5}, "guard_sample belongs to guard: tags\\+content, and guard is tags"),
        ({"model": "m", "guard": "off", "guard_sample": 0.5}, "guard_sample belongs to .*, and guard is off"),
        ({"model": "m", "guard": "tags+content", "guard_sample": 0}, "guard_sample 0 would compare no page"),
        ({"model": "m", "guard": "tags+content", "guard_sample": -0.1}, "guard_sample: .*got -0.1"),
        ({"model": "m", "guard": "tags+content", "guard_sample": 1.1}, "guard_sample: .*got 1.1"),
        ({"model": "m", "guard": "contents"}, "guard: 'contents' is not one of off, tags, tags\\+content"),
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
        ("model: " + 1000 * "[", "nested too deeply"),
        ("model: " + 1000 * "[" + 1000 * "]", "nested too deeply"),
        ("? " + 1000 * "[" + 1000 * "]" + "\n: m", "nested too deeply"),
        ("model: " + 40 * "[" + 40 * "]", "nested too deeply or holds too much"),
        ("model: m\ntarget_options: &a {x: *a}\n", "nested too deeply or holds too much"),
        ("model: m\nseed: 2024-13-45\n", "month must be in"),
        (f"model: m\nseed: {5000 * '9'}\n", "cannot be read"),
        ("model: m\nseed: !!int ''\n", "cannot be read"),
        ("model: m\nseed: !!timestamp x\n", "cannot be read"),
        ("model: m\nseed: !!bool x\n", "cannot be read"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        read_recipe(write(tmp_path, text))


def test_aliases_that_make_much_of_little_are_refused() -> None:
    lists = ["&a0 [1, 1, 1, 1, 1, 1, 1, 1]", *(f"&a{n} [{', '.join(8 * [f'*a{n - 1}'])}]" for n in range(1, 20))]
    data = parse_yaml("model: m\ntarget_options: {" + ", ".join(f"b{n}: {each}" for n, each in enumerate(lists)) + "}")
    with pytest.raises(RecipeError, match="nested too deeply or holds too much"):
        recipe_from(data)


def test_a_deep_value_from_a_program_is_refused_too() -> None:
    value: Any = 1
    for _ in range(5000):
        value = {"a": value}
    with pytest.raises(RecipeError, match="nested too deeply or holds too much"):
        recipe_from({"model": "m", "calibration": value})


def test_what_is_refused_is_shown_in_short() -> None:
    with pytest.raises(RecipeError, match="weights") as refused:
        recipe_from({"model": "m", "weights": list(range(5000))})
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("key", sorted({*Recipe.model_fields} - {"attention_data_parallel"}))
def test_true_and_false_are_values_of_a_question_only(key: str, value: bool) -> None:
    with pytest.raises(RecipeError, match=rf"{key}: .*\(got {value}\)"):
        recipe_from({"model": "m", key: value})


@pytest.mark.parametrize("key", Calibration.model_fields)
def test_true_and_false_are_no_values_of_calibration(key: str) -> None:
    with pytest.raises(RecipeError, match=rf"calibration\.{key}: .*\(got True\)"):
        recipe_from({"model": "m", "calibration": {key: True}})


def test_words_that_yaml_1_1_takes_for_booleans_are_words(tmp_path: Path) -> None:
    recipe = read_recipe(write(tmp_path, "model: m\nguard: off\nname: on\nattention_data_parallel: true\n"))
    assert (recipe.guard, recipe.name, recipe.attention_data_parallel) == ("off", "on", True)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"nowhere\.yaml does not exist"):
        read_recipe(tmp_path / "nowhere.yaml")


def test_every_default_recipe_key_survives_a_round_trip() -> None:
    recipe = Recipe(model="m")
    assert recipe_from(recipe.model_dump()) == recipe


@pytest.mark.parametrize("sample", [1e-6, 0.02, 1, None])
def test_a_sample_belongs_to_the_content_check(sample: float | None) -> None:
    recipe = recipe_from({"model": "m", "guard": "tags+content", "guard_sample": sample})
    assert (recipe.guard, recipe.guard_sample) == ("tags+content", sample)


@pytest.mark.parametrize("guard", ["off", "tags"])
def test_recipes_from_before_contents_were_checked_are_still_read(guard: str) -> None:
    """They all say `guard_sample: 0.0`."""
    assert recipe_from({"model": "m", "guard": guard, "guard_sample": 0.0}).guard == guard
