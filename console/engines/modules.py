"""What became of a model's modules, with layers and experts folded together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

__all__ = ["FoldedModules", "fold_modules", "kinds_of_modules"]

_MOST_NAMES = 400
"""Of one kind; a model with many experts has tens of thousands, and the manifest names them all."""


@dataclass(frozen=True)
class FoldedModules:
    """Modules that differ in numbers only, and became the same."""

    pattern: str
    """Their name, with ``*`` for numbers."""
    became: str
    count: int
    layers: str
    """Which layers they are in: ``0-29``; empty where they are in none."""
    names: tuple[str, ...]
    """The first of them."""

    @property
    def unnamed(self) -> int:
        """How many are not among ``names``."""
        return self.count - len(self.names)


def fold_modules(modules: Mapping[str, str]) -> tuple[FoldedModules, ...]:
    """Fold what a manifest says of each module, by pattern.

    Args:
        modules: what each became, by name.
    """
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, became in modules.items():
        pattern = ".".join("*" if part.isdigit() else part for part in name.split("."))
        found[pattern, became].append(name)
    return tuple(
        FoldedModules(pattern, became, len(names), _ranges(_layers(names)), tuple(sorted(names, key=_natural)[:_MOST_NAMES]))
        for (pattern, became), names in sorted(found.items())
    )


def kinds_of_modules(modules: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """How many modules became what, the most first; what is told beside the format is left out."""
    return tuple(Counter(became.partition(",")[0] for became in modules.values()).most_common())


def _layers(names: Iterable[str]) -> list[int]:
    """Numbers of layers: the first number in each name."""
    first = (next((int(part) for part in name.split(".") if part.isdigit()), None) for name in names)
    return sorted({number for number in first if number is not None})


def _ranges(numbers: Iterable[int]) -> str:
    """``0-3, 7``."""
    runs = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        runs.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return ", ".join(runs)


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sorts layer 2 before layer 10."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in name.split("."))
