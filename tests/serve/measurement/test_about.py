"""Subjects that come from elsewhere: what is looked at in them has the type that it must have."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from roundhouse.serve.measurement.about import Subject


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"manifest": {"recipe": 3}}, "recipe is no object"),
        ({"manifest": {"plan": None}}, "plan is no object"),
        ({"manifest": {"plan": {"recipe": "x"}}}, "the recipe of its plan is no object"),
        ({"manifest": {"versions": ["torch"]}}, "versions is no object"),
        ({"manifest": {"recipe": {"target": 3}}}, "target of its recipe is no text"),
        ({"settings": {"kv": 3}}, "kv.tokens is no number"),
    ],
)
def test_a_manifest_of_something_else_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Subject(kind="engine", name="x", model="x", **fields)


def test_what_is_not_told_is_empty() -> None:
    assert Subject(kind="endpoint", name="x", model="x").recipe == {}
    assert Subject(kind="engine", name="x", model="x", manifest={}, settings={"kv": None}).recipe == {}


@pytest.mark.parametrize(
    ("recipe", "devices"),
    [
        ({"tensor_parallel": 4, "pipeline_parallel": 2}, 8),
        ({"tensor_parallel": 2}, 2),
        ({"weights": "bf16"}, None),
        ({"tensor_parallel": "4", "pipeline_parallel": 10**400}, None),
    ],
)
def test_devices_are_what_the_recipe_spreads_over(recipe: dict[str, Any], devices: int | None) -> None:
    assert Subject(kind="engine", name="x", model="x", manifest={"recipe": recipe}).devices == devices
