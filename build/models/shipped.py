"""Shapes that ship with the planner: the configs of public models, to plan without their files (``shapes.json``)."""

from __future__ import annotations

import difflib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from roundhouse.errors import ModelError

__all__ = ["SHAPE_PREFIX", "shipped_config", "shipped_names"]

SHAPE_PREFIX = "shape:"


def shipped_names() -> tuple[str, ...]:
    """The names that may stand behind ``shape:``."""
    return tuple(_table())


def shipped_config(name: str) -> dict[str, Any]:
    """The ``config.json`` of a shipped shape; upper and lower case are the same.

    With ``@bf16`` behind its name it is the shape of an unquantized copy, for models that are published quantized.

    Raises:
        ModelError: no shape is called like this; the nearest names are given.
    """
    name, _, form = name.partition("@")
    config: dict[str, Any] | None = _table().get(name.lower())
    if config is None:
        near = difflib.get_close_matches(name.lower(), _table(), cutoff=0.5)
        hint = f"Did you mean {', '.join(near)}?" if near else f"Shipped shapes: {', '.join(_table())}."
        raise ModelError(f"there is no shape {name!r}", hint=hint)
    if form not in ("", "bf16"):
        raise ModelError(
            f"shape {name} has no form {form!r}", hint=f"`shape:{name}@bf16` is the only one beside the published."
        )
    return {key: value for key, value in config.items() if key != "quantization_config"} if form else config


@cache
def _table() -> dict[str, Any]:
    shapes: dict[str, Any] = json.loads(files(__package__).joinpath("shapes.json").read_text())["shapes"]
    return shapes
