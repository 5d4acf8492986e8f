"""What is written down of a machine: never more than is known of whom it serves."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from roundhouse.build.recipe import recipe_from
from roundhouse.serve.measurement.environment import environment_elsewhere, environment_of
from roundhouse.serve.measurement.gpus import NO_GPUS


def test_an_engine_of_ours_has_our_hardware_and_packages() -> None:
    recipe = recipe_from({"model": "m", "target": "torch"})
    found = environment_of(recipe, NO_GPUS, None, threading.Event())
    assert found.hardware is not None
    assert {"roundhouse", "torch"} <= set(found.versions)


@pytest.mark.parametrize(
    "found", [environment_of(None, NO_GPUS, None, threading.Event()), environment_elsewhere()], ids=["beside", "elsewhere"]
)
def test_of_a_server_that_is_not_ours_only_the_client_is_recorded(found: Any) -> None:
    assert found.hardware is None
    assert set(found.versions) == {"roundhouse (client)", "python (client)"}
