"""What differs between two records of one name, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .upstream import (
    CallableRecord,
    ClassRecord,
    FieldsRecord,
    OptionSpec,
    OptionsRecord,
    ParameterSpec,
    Record,
    UpstreamField,
    ValuesRecord,
)

__all__ = ["differences"]

_BUILT_IN = {"int", "float", "str", "bool", "None"}
"""Types that both a reader and Python write the same way; others are not compared."""


def differences(old: Record, new: Record) -> list[str]:
    """Say what a new record has, lacks and changes against an old one; where it was read, and notes, do not count."""
    if isinstance(old, FieldsRecord) and isinstance(new, FieldsRecord):
        return [*_keys("field", old.fields, new.fields), *_both(_field_change, old.fields, new.fields)]
    if isinstance(old, ValuesRecord) and isinstance(new, ValuesRecord):
        return list(_keys("value", dict.fromkeys(old.values), dict.fromkeys(new.values)))
    if isinstance(old, OptionsRecord) and isinstance(new, OptionsRecord):
        return list(_options(old.options, new.options))
    if isinstance(old, ClassRecord) and isinstance(new, ClassRecord):
        found = list(_keys("method", old.methods, new.methods))
        for name in old.methods.keys() & new.methods.keys():
            found += [f"{name}: {change}" for change in _parameters(old.methods[name], new.methods[name])]
        return sorted(found)
    if isinstance(old, CallableRecord) and isinstance(new, CallableRecord):
        return [] if old.parameters is None or new.parameters is None else list(_parameters(old.parameters, new.parameters))
    return [f"was recorded as {old.kind}, and now as {new.kind}"]


def _keys(what: str, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    yield from (f"{what} {name} is gone" for name in old if name not in new)
    yield from (f"{what} {name} is new" for name in new if name not in old)


def _both(change: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in old:
        if name in new:
            yield from (f"{name}: {said}" for said in change(old[name], new[name]))


def _field_change(old: UpstreamField, new: UpstreamField) -> Iterator[str]:
    before, after = set(old.type.split(" | ")), set(new.type.split(" | "))
    if before != after and before | after <= _BUILT_IN:
        yield f"type {old.type} became {new.type}"
    yield from _default(old, new)
    yield from _choice(old.choices, new.choices)


def _default(old: UpstreamField | ParameterSpec, new: UpstreamField | ParameterSpec) -> Iterator[str]:
    before, after = _default_text(old), _default_text(new)
    if before != after:
        yield f"{before} became {after}"


def _default_text(spec: UpstreamField | ParameterSpec) -> str:
    if spec.required:
        return "required"
    if isinstance(spec, UpstreamField) and spec.factory is not None:
        return f"default {spec.factory}()"
    return f"default {spec.default!r}"


def _choice(old: Sequence[object] | None, new: Sequence[object] | None) -> Iterator[str]:
    if old is not None and new is not None:
        yield from _keys("choice", {str(each): each for each in old}, {str(each): each for each in new})


def _options(old: Mapping[str, OptionSpec], new: Mapping[str, OptionSpec]) -> Iterator[str]:
    """An option is the same one under any of its names."""
    left = dict(new)
    for name, spec in old.items():
        words = {name, *spec.aliases}
        match = next((each for each, other in left.items() if words & {each, *other.aliases}), None)
        if match is None:
            yield f"option {name} is gone"
            continue
        other = left.pop(match)
        gone = words - {match, *other.aliases}
        if gone:
            yield f"{name}: {', '.join(sorted(gone))} is not a name of it any more"
        if spec.default != other.default and not (spec.default is None and other.default is False):
            yield f"{name}: default {spec.default!r} became {other.default!r}"
        yield from (f"{name}: {said}" for said in _choice(spec.choices, other.choices))
    yield from (f"option {name} is new" for name in left)


def _parameters(old: Sequence[ParameterSpec], new: Sequence[ParameterSpec]) -> Iterator[str]:
    before, after = {each.name: each for each in old}, {each.name: each for each in new}
    yield from _keys("parameter", before, after)
    for name in before:
        if name in after:
            if before[name].kind != after[name].kind:
                yield f"parameter {name} is {after[name].kind}, was {before[name].kind}"
            yield from (f"parameter {name}: {said}" for said in _default(before[name], after[name]))
    plain = [each.name for each in old if each.kind == "plain" and each.name in after and after[each.name].kind == "plain"]
    order = [each.name for each in new if each.name in plain]
    if plain != order:
        yield f"parameters come in another order: {', '.join(order)}"
