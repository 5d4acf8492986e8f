"""Whether a value fits a JSON schema, of the few keywords that tools' parameters in the shipped suite use.

A keyword that is not known here is an error, so that nothing passes unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["misfit"]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
}
_KEYWORDS = frozenset(("type", "description", "enum", "pattern", "minimum", "maximum", "items", "minItems", "maxItems")) | {
    "properties",
    "required",
    "additionalProperties",
}


def misfit(value: object, schema: Mapping[str, Any], where: str = "arguments") -> str | None:
    """Why a value does not fit, in a sentence; None when it does.

    Args:
        value: as ``json.loads`` reads it.
        schema: with ``type``, and keywords that belong to it.
        where: what the value is called in the sentence.

    Raises:
        ValueError: the schema has a keyword that is not known here.
    """
    if unknown := schema.keys() - _KEYWORDS:
        raise ValueError(f"keywords that are not checked: {', '.join(sorted(unknown))}")
    kind = schema["type"]
    if not _is(value, kind):
        return f"{where} is no {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is {value!r}, none of {schema['enum']}"
    if isinstance(value, str):
        return f"{where} does not match {schema['pattern']}" if not re.search(schema.get("pattern", ""), value) else None
    if isinstance(value, dict):
        return _object(value, schema, where)
    if isinstance(value, list):
        return _array(value, schema, where)
    if isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{where} is {value}, out of range"
    return None


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):  # which Python counts among the integers
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _object(value: Mapping[str, object], schema: Mapping[str, Any], where: str) -> str | None:
    properties = schema.get("properties", {})
    if missing := [name for name in schema.get("required", ()) if name not in value]:
        return f"{where} lacks {missing[0]}"
    for name, member in value.items():
        if name in properties:
            if problem := misfit(member, properties[name], f"{where}.{name}"):
                return problem
        elif schema.get("additionalProperties") is False:
            return f"{where} has {name}, which nothing asks for"
    return None


def _array(value: list[object], schema: Mapping[str, Any], where: str) -> str | None:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return f"{where} has {len(value)} items"
    problems = (misfit(item, schema["items"], f"{where}[{place}]") for place, item in enumerate(value) if "items" in schema)
    return next((problem for problem in problems if problem), None)
