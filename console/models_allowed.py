"""Which models and texts may be read for somebody who asks over the network: those in a few folders, and what is public.

Whoever may build could otherwise have any file of a worker's host read, and see parts of it in errors and engines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from roundhouse.build.home import Home
from roundhouse.build.models.shipped import SHAPE_PREFIX
from roundhouse.build.models.sources import is_hub_id
from roundhouse.build.recipe import Recipe
from roundhouse.errors import UsageError

__all__ = ["AllowedModels"]

_DEMO_PREFIX = "demo:"
_MOST_FILES = 10_000
"""A model has a few hundred; a folder with more is something else, and would take long to look through."""


class AllowedModels:
    """Says whether a model or a text may be read.

    Args:
        folders: where local ones may lie; empty: in the home's ``models``.
        home: whose.
    """

    def __init__(self, folders: Sequence[Path], home: Home) -> None:
        self.folders = tuple(folders) or (home.path / "models",)

    def require(self, source: str) -> None:
        """See that a model may be read: a hub id, what ships with the package, or a path in one of the folders.

        Symlinks count as what they lead to, those within a model's folder too.

        Raises:
            UsageError: it lies elsewhere. Whether anything is there is not told.
        """
        if self._is_public(source):
            return
        self._require_within(source, "model")

    def require_recipe(self, recipe: Recipe) -> None:
        """See that everything that a recipe names may be read.

        Raises:
            UsageError: as :meth:`require`.
        """
        self.require(recipe.model)
        if recipe.calibration.text is not None:
            self._require_within(str(recipe.calibration.text), "calibration text")

    def _is_public(self, source: str) -> bool:
        named = source.startswith((_DEMO_PREFIX, SHAPE_PREFIX)) or is_hub_id(source)
        return named and not os.path.lexists(source)  # a folder org/name below the working directory goes before the hub's

    def _require_within(self, source: str, what: str) -> None:
        try:
            path = Path(source).expanduser()
            roots = [folder.expanduser().resolve() for folder in self.folders]
            allowed = path.is_absolute() and all(_is_within(each, roots) for each in (path, *_links_in(path, roots)))
        except (OSError, ValueError, RuntimeError):  # a loop of symlinks, a NUL in the name, nobody's home
            allowed = False
        if not allowed:
            raise UsageError(
                f"the {what} {source} is not in a folder that may be read here: {', '.join(map(str, self.folders))}",
                hint="Copy it there and give the whole path, or start console and worker with `--models FOLDER`.",
            )


def _is_within(path: Path, roots: Iterable[Path]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(root) for root in roots)


def _links_in(path: Path, roots: Iterable[Path]) -> Iterator[Path]:
    """Every symlink below a folder; only looked for where the folder itself may be read."""
    if not _is_within(path, roots):
        return
    seen = 0
    for folder, folders, files in os.walk(path):
        seen += len(files) + len(folders)
        if seen > _MOST_FILES:
            raise UsageError(f"{path} holds more than {_MOST_FILES:,} files: it is no model folder")
        yield from (entry for name in (*folders, *files) if (entry := Path(folder, name)).is_symlink())
