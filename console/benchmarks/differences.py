"""What differs between runs, from parts of their headers.

:mod:`roundhouse.serve.benchmark.differences` says the same of whole headers. These hold the manifests of engines, which are
large, so a database gives only the parts that say something, and what is written alike in many runs is read once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.differences import ABSENT

from ..models import BenchmarkRun

__all__ = ["Facts", "LinedUp", "facts_by_run", "line_up"]

Facts = Mapping[tuple[str, str], str]
"""What there is to say of one run, by part and key."""


def _of_header(*path: str) -> ColumnElement[str]:
    """A part of the header as it is written down: JSON, or a plain text where it is one."""
    part: ColumnElement[str] = BenchmarkRun.header[path].as_string()
    return part


_OBJECTS = {
    "recipe": _of_header("subject", "manifest", "recipe"),
    "settings": _of_header("subject", "settings"),
    "versions": _of_header("environment", "versions"),
    "built with": _of_header("subject", "manifest", "versions"),
    "workload": _of_header("workload"),
    "hardware": _of_header("environment", "hardware"),
}
"""Parts whose keys are facts."""
_GPUS = ("hardware", "gpus")
_SINGLE: dict[tuple[str, str], ColumnElement[Any]] = {
    ("subject", "name"): BenchmarkRun.name.expression,
    ("subject", "model"): BenchmarkRun.model.expression,
    ("subject", "engine_id"): BenchmarkRun.engine_id.expression,
    ("subject", "url"): _of_header("subject", "url"),
    ("subject", "server"): _of_header("subject", "server"),
    ("hardware", "host"): _of_header("environment", "host"),
    _GPUS: _of_header("environment", "gpus"),
    ("hardware", "driver"): _of_header("environment", "driver"),
    ("load", "driver"): BenchmarkRun.driver.expression,
    ("load", "driver_version"): _of_header("driver_version"),
    ("load", "repeats"): BenchmarkRun.repeats.expression,
    ("load", "seed"): _of_header("seed"),
}
_PARTS = ("subject", "recipe", "settings", "workload", "hardware", "versions", "built with", "load")
"""In the order in which they are shown."""
_NOT_TOLD = {"recipe": ("name", "model"), "workload": ("name",), "hardware": ("free_memory",)}
"""What is told elsewhere, and what was true for a moment only."""


@dataclass(frozen=True)
class LinedUp:
    """One key, and what it is for each run."""

    part: str
    key: str
    """With dots where it is nested: ``calibration.samples``."""
    values: tuple[str, ...]
    """A run each."""

    @property
    def is_equal(self) -> bool:
        """Whether it is the same everywhere."""
        return len(set(self.values)) == 1

    @property
    def runs_by_value(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Each value once, the commonest first, with the places of the runs that have it."""
        places: dict[str, list[int]] = {}
        for place, value in enumerate(self.values):
            places.setdefault(value, []).append(place)
        return tuple((value, tuple(there)) for value, there in sorted(places.items(), key=lambda each: -len(each[1])))


def facts_by_run(session: Session, ids: Sequence[str]) -> dict[str, Facts]:
    """What there is to say of some runs: one statement."""
    single = [column.label(f"single_{number}") for number, column in enumerate(_SINGLE.values())]
    objects = [column.label(f"object_{number}") for number, column in enumerate(_OBJECTS.values())]
    read: dict[tuple[str, str | None], dict[tuple[str, str], str]] = {}
    found: dict[str, Facts] = {}
    for id_, *values in session.execute(select(BenchmarkRun.id, *single, *objects).where(BenchmarkRun.id.in_(ids))):
        facts = {key: _single(key, value) for key, value in zip(_SINGLE, values, strict=False)}
        for part, text in zip(_OBJECTS, values[len(_SINGLE) :], strict=True):
            if (part, text) not in read:
                read[part, text] = {(part, key): value for key, value in _flat(_object(text), _NOT_TOLD.get(part, ()))}
            facts |= read[part, text]
        found[id_] = facts
    return found


def line_up(facts: Sequence[Facts]) -> tuple[LinedUp, ...]:
    """Everything that is known of any of the runs, part by part."""
    keys = dict.fromkeys(key for each in facts for key in each)
    return tuple(
        LinedUp(part, key, tuple([each.get((part, key), ABSENT) for each in facts]))
        for part, key in sorted(keys, key=lambda each: _PARTS.index(each[0]))
    )


def _object(text: str | None) -> Mapping[str, Any]:
    """A part with keys; an empty one where somebody's manifest has something else there."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _flat(values: Mapping[str, Any], left_out: Sequence[str] = (), above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, left_out, f"{above}{key}.")
        elif key not in left_out:
            yield f"{above}{key}", _text(value)


def _single(key: tuple[str, str], value: Any) -> str:
    """Of a column; the list among them comes as JSON, and what else looks like it is somebody's words."""
    return _text(json.loads(value)) if key == _GPUS and isinstance(value, str) else _text(value)


def _text(value: Any) -> str:
    if value is None or value == []:
        return ABSENT
    if isinstance(value, list):
        return ", ".join(_text(each) for each in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value)
