"""JSON schemas in requests: any object, but not nested without end, which nothing after this could walk."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator

__all__ = ["Schema"]

_DEEPEST = 100


def _not_too_deep(schema: dict[str, Any]) -> dict[str, Any]:
    level: list[object] = [schema]
    for _ in range(_DEEPEST):
        level = [child for each in level for child in _children(each)]
        if not level:
            return schema
    raise ValueError(f"the schema is nested more than {_DEEPEST} levels deep")


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


Schema = Annotated[dict[str, Any], AfterValidator(_not_too_deep)]
