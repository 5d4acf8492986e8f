"""Configs that ship with the planner."""

from __future__ import annotations

import pytest

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.inventory import is_known_family
from roundhouse.build.models.shipped import shipped_config, shipped_names
from roundhouse.errors import ModelError


@pytest.mark.parametrize("name", shipped_names())
def test_every_key_of_a_shipped_config_is_read(name: str) -> None:
    shape = shape_from_config(shipped_config(name), stored_dtype=None, where=name)
    assert is_known_family(shape)
    assert shape.unread == ()
    assert shape.dtype_from.endswith("dtype")


def test_the_issues_models_are_shipped() -> None:
    assert {"kimi-k2.6", "glm-5.2", "deepseek-v3", "llama-3.1-8b"} <= set(shipped_names())


def test_capitals_do_not_matter() -> None:
    assert shipped_config("Kimi-K2.6") == shipped_config("kimi-k2.6")


@pytest.mark.parametrize(("name", "hint"), [("kimi-2.6", "kimi-k2.6"), ("lama-3.1-8b", "llama-3.1-8b"), ("??", "smollm2-135m")])
def test_an_unknown_name_gets_the_nearest_ones(name: str, hint: str) -> None:
    with pytest.raises(ModelError, match="there is no shape") as refused:
        shipped_config(name)
    assert hint in str(refused.value.hint)


def test_glm_5_2_owns_21_indexers_and_its_forerunner_78() -> None:
    owners = {name: shape_from_config(shipped_config(name), stored_dtype=None).indexer for name in ("glm-5.2", "glm-5.1")}
    assert {name: len(indexer.layers) for name, indexer in owners.items() if indexer} == {"glm-5.2": 21, "glm-5.1": 78}
