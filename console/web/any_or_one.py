"""Options of a filter: any, or one of what there is."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["any_or_one"]


def any_or_one(names: Iterable[str]) -> list[tuple[str, str]]:
    """Values and labels, the empty value first."""
    return [("", "any"), *((name, name) for name in names)]
