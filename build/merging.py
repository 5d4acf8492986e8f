"""Mappings laid over one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["merged"]


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping with changes laid over it, mapping by mapping; new keys come last. Neither side is changed."""
    result = dict(base)
    for key, value in changes.items():
        here = result.get(key)
        result[key] = merged(here, value) if isinstance(here, dict) and isinstance(value, dict) else value
    return result
