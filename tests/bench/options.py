"""What every bench is told on its command line."""

from __future__ import annotations

import argparse

from roundhouse.build.command_options import progress_terminal
from roundhouse.build.engine import Engine
from roundhouse.build.home import default_home
from roundhouse.build.models.sources import DEMO_MODEL
from roundhouse.build.pipeline import build
from roundhouse.build.recipe import Recipe
from roundhouse.build.store import EngineStore

__all__ = ["ENGINE_HELP", "engine_of", "numbers", "positive"]

ENGINE_HELP = "an engine's name, id or folder; the demo's, built when it is not there"


def numbers(text: str) -> list[int]:
    """Positive numbers with commas between them."""
    return [positive(part) for part in text.split(",")]


def positive(text: str) -> int:
    """A number from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def engine_of(wanted: str | None) -> Engine:
    """The engine that was asked for, or the demo's, built when it is not there."""
    home = default_home()
    if wanted is not None:
        return EngineStore(home).find(wanted)
    with progress_terminal() as terminal:
        return build(Recipe(model=DEMO_MODEL, name="demo"), home, terminal).engine
