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

    Raises:
        ModelError: no shape is called like this; the nearest names are given.
    """
    config: dict[str, Any] | None = _table().get(name.lower())
    if config is None:
        near = difflib.get_close_matches(name.lower(), _table(), cutoff=0.5)
        hint = f"Did you mean {', '.join(near)}?" if near else f"Shipped shapes: {', '.join(_table())}."
        raise ModelError(f"there is no shape {name!r}", hint=hint)
    return config


@cache
def _table() -> dict[str, Any]:
    shapes: dict[str, Any] = json.loads(files(__package__).joinpath("shapes.json").read_text())["shapes"]
    return shapes
