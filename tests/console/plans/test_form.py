"""A plan's form is its address, and means one recipe."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.build.planner.problems import Alternative
from roundhouse.build.recipe import Recipe
from roundhouse.console.plans.form import FIELDS, FormProblemsError, PlanForm
from roundhouse.console.plans.recipe_text import recipe_from_text, recipe_text

KEYS = st.fixed_dictionaries(
    {"model": st.sampled_from(["demo:smollm2", "/models/über model", "a: b # c", "'", "no", "1.5"])},
    optional={
        "name": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True),
        "target": st.sampled_from(["torch", "tensorrt", "trtllm-pytorch"]),
        "weights": st.sampled_from(["bf16", "int4_awq", "as_is"]),
        "group_size": st.one_of(st.just("auto"), st.integers(1, 512)),
        "kv_cache": st.sampled_from(["fp8", "bf16"]),
        "attention_data_parallel": st.booleans(),
        "tensor_parallel": st.integers(1, 2**60),
        "max_seq_len": st.one_of(st.none(), st.integers(1, 2**60)),
        "guard": st.sampled_from(["off", "tags"]),
        "seed": st.integers(0, 2**60),
        "calibration": st.fixed_dictionaries(
            {}, optional={"samples": st.integers(1, 99), "text": st.just("/models/text.txt"), "alpha_step": st.floats(0.01, 1)}
        ),
    },
)
MEMORY = st.one_of(
    st.just({}),
    st.builds(lambda value: {"memory_fraction": value}, st.floats(0.001, 1)),
    st.builds(lambda value: {"kv_cache_bytes": value}, st.integers(1, 2**60)),
    st.builds(lambda value: {"kv_cache_tokens": value}, st.integers(1, 2**60)),
)
RECIPES = st.builds(lambda keys, memory: Recipe.model_validate(keys | memory), KEYS, MEMORY)


@given(RECIPES)
def test_a_recipe_is_the_same_after_its_form_its_address_and_its_text(recipe: Recipe) -> None:
    form = PlanForm.of(recipe, "h200")
    assert PlanForm.read(parse_qsl(form.query)) == form
    assert form.recipe() == recipe
    assert recipe_from_text(recipe_text(recipe)) == recipe
    assert recipe_from_text(recipe_text(recipe)).model_fields_set >= {"model"}


def test_what_is_left_empty_is_left_open() -> None:
    form = PlanForm.read([("model", " demo:smollm2 "), ("weights", ""), ("page_tokens", "  "), ("nonsense", "1")])
    assert form.query == "model=demo%3Asmollm2"
    assert form.recipe().model_fields_set == {"model"}


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"model": ""}, "model", "choose a model"),
        ({"page_tokens": "x"}, "page_tokens", "a whole number is needed"),
        ({"page_tokens": "1.5"}, "page_tokens", "a whole number is needed"),
        ({"max_batch_size": "0"}, "max_batch_size", "it has to be at least 1"),
        ({"group_size": "big"}, "group_size", "auto or a whole number is needed"),
        ({"group_size": "-3"}, "group_size", "group_size -3 is not a positive number"),
        ({"weights": "int3"}, "weights", "it is one of bf16, fp8, int4_awq, w4a8_awq, nvfp4, as_is"),
        ({"attention_data_parallel": "perhaps"}, "attention_data_parallel", "it is either on or off"),
        ({"name": "../x"}, "name", "letters, digits, dots, dashes and underscores only, the first a letter or a digit"),
        ({"memory": "kv_cache_tokens"}, "memory_value", "say how much"),
        ({"memory_value": "5"}, "memory", "say what the number beside it is"),
        ({"memory": "kv_cache_tokens", "memory_value": "some"}, "memory_value", "a whole number is needed"),
        ({"memory": "seed", "memory_value": "5"}, "memory", "it is one of memory_fraction, kv_cache_bytes, kv_cache_tokens"),
        ({"memory": "memory_fraction", "memory_value": "1.5"}, "memory_value", "it has to be at most 1"),
        ({"memory": "memory_fraction", "memory_value": "nan"}, "memory_value", "a number is needed"),
        ({"calibration.samples": "none"}, "calibration.samples", "a whole number is needed"),
        ({"guard_sample": "0.5"}, "guard_sample", "guard_sample belongs to guard: tags+content, and guard is tags"),
        ({"tensor_parallel": "9" * 19}, "tensor_parallel", "nothing is so large"),
        ({"model": "a\x00b"}, "model", "it holds characters that cannot be shown"),
        ({"model": "x" * 5000}, "model", "this is too long"),
    ],
)
def test_each_problem_belongs_to_its_field(typed: dict[str, str], field: str, said: str) -> None:
    with pytest.raises(FormProblemsError) as caught:
        PlanForm.read(({"model": "demo:smollm2"} | typed).items()).recipe()
    assert caught.value.problems == {field: said}


def test_every_wrong_field_is_told_at_once() -> None:
    with pytest.raises(FormProblemsError) as caught:
        PlanForm.read({"model": "m", "seed": "x", "page_tokens": "y", "calibration.tokens": "1"}.items()).recipe()
    assert set(caught.value.problems) == {"seed", "page_tokens", "calibration.tokens"}


@pytest.mark.parametrize(
    ("typed", "count"), [("8 GiB", 8 * 2**30), ("1.5g", 3 * 2**29), ("512 MiB", 2**29), ("10 KB", 10240), ("77", 77)]
)
def test_bytes_may_carry_a_unit(typed: str, count: int) -> None:
    form = PlanForm.read({"model": "m", "memory": "kv_cache_bytes", "memory_value": typed}.items())
    assert form.recipe().kv_cache_bytes == count


def test_alternatives_change_the_address_and_nothing_else() -> None:
    form = PlanForm.read({"model": "shape:kimi-k2", "tensor_parallel": "8", "device": "H200-SXM", "with": "model=m"}.items())
    changed = form.with_alternative(Alternative(text="", changes={"tensor_parallel": 4, "attention_data_parallel": True}))
    assert changed is not None
    assert changed.full_query == (
        "model=shape%3Akimi-k2&tensor_parallel=4&attention_data_parallel=true&device=H200-SXM&with=model%3Dm"
    )
    copy = Alternative(text="", changes={"weights": "fp8"}, unquantized=True)
    unquantized = form.with_alternative(copy)
    assert unquantized is not None
    assert unquantized.values["model"] == "shape:kimi-k2@bf16"
    assert form.changed({"model": "/models/kimi"}).with_alternative(copy) is None


def test_plans_beside_it_are_kept_once_and_at_most_four() -> None:
    others = [("with", f"model=m{n}&junk=1&with=model%3Dx") for n in (1, 1, 2, 3, 4, 5)]
    form = PlanForm.read([("model", "m"), *others, ("with", "junk=2")])
    assert form.compared == ("model=m1", "model=m2", "model=m3", "model=m4")
    assert PlanForm.read(parse_qsl(form.full_query)) == form


def test_the_form_has_a_field_for_every_recipe_key_that_can_be_chosen() -> None:
    keys = {key.partition(".")[0] for key in FIELDS} | {"memory_fraction", "kv_cache_bytes", "kv_cache_tokens"}
    assert set(Recipe.model_fields) - keys == {"lm_head", "target_options"}
