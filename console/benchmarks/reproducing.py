"""What it takes to measure a run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from roundhouse.build.recipe import Recipe
from roundhouse.serve.benchmark.records import BenchmarkHeader

__all__ = ["Reproduction", "reproduction"]


@dataclass(frozen=True)
class Reproduction:
    """As a page shows it."""

    command: str
    recipe: str
    """YAML; empty for what was not built here."""
    versions: tuple[tuple[str, str], ...]
    """Of packages when it was measured, and of those that built the engine where they differ."""
    settings: tuple[tuple[str, str], ...]
    """What the engine's process ran with."""


def reproduction(header: BenchmarkHeader) -> Reproduction:
    """From what a run wrote down about itself."""
    manifest = header.subject.manifest or {}
    built = manifest.get("versions")
    versions = dict(header.environment.versions)
    if header.driver_version:
        versions[header.driver] = header.driver_version
    if isinstance(built, dict):
        versions |= {f"{name} (built with)": str(of) for name, of in built.items() if versions.get(name) != of}
    return Reproduction(
        command=header.command,
        recipe=_recipe_text(header.subject.recipe),
        versions=tuple(sorted(versions.items())),
        settings=tuple((name, _text(value)) for name, value in (header.subject.settings or {}).items() if value is not None),
    )


def _recipe_text(recipe: dict[str, Any]) -> str:
    """In the order of the documentation, without what is left open."""
    known = [*(key for key in Recipe.model_fields if key in recipe), *(key for key in recipe if key not in Recipe.model_fields)]
    given = {key: recipe[key] for key in known if recipe[key] is not None}
    return yaml.safe_dump(given, sort_keys=False, allow_unicode=True, width=100) if given else ""


def _text(value: object) -> str:
    """A setting in a line; of one with parts, the parts."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
