"""What there is to say of runs, for :mod:`roundhouse.serve.benchmark.differences`, from parts of their headers.

Headers hold the manifests of engines, which are large, so a database gives only the parts that say something, and what is
written alike in many runs is read once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.differences import Facts, Part, facts_of, text_of

from ..models import BenchmarkRun

__all__ = ["facts_by_run"]


def _of_header(*path: str) -> ColumnElement[str]:
    """A part of the header as it is written down: JSON, or a plain text where it is one."""
    part: ColumnElement[str] = BenchmarkRun.header[path].as_string()
    return part


_OBJECTS: dict[Part, ColumnElement[str]] = {
    "recipe": _of_header("subject", "manifest", "recipe"),
    "settings": _of_header("subject", "settings"),
    "versions": _of_header("environment", "versions"),
    "built with": _of_header("subject", "manifest", "versions"),
    "workload": _of_header("workload"),
    "hardware": _of_header("environment", "hardware"),
}
"""Parts whose keys are facts."""
_GPUS: tuple[Part, str] = ("hardware", "gpus")
_SINGLE: dict[tuple[Part, str], ColumnElement[Any]] = {
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
"""Concurrencies and prompt lengths are not among them: a comparison has a column for each."""


def facts_by_run(session: Session, ids: Sequence[str]) -> dict[str, Facts]:
    """What there is to say of some runs: one statement."""
    single = [column.label(f"single_{number}") for number, column in enumerate(_SINGLE.values())]
    objects = [column.label(f"object_{number}") for number, column in enumerate(_OBJECTS.values())]
    read: dict[tuple[Part, str | None], Facts] = {}
    found: dict[str, Facts] = {}
    for id_, *values in session.execute(select(BenchmarkRun.id, *single, *objects).where(BenchmarkRun.id.in_(ids))):
        facts = {key: _single(key, value) for key, value in zip(_SINGLE, values, strict=False)}
        for part, text in zip(_OBJECTS, values[len(_SINGLE) :], strict=True):
            if (part, text) not in read:
                read[part, text] = facts_of(part, _object(text))
            facts |= read[part, text]
        found[id_] = facts
    return found


def _object(text: str | None) -> Mapping[str, Any]:
    """A part with keys; an empty one where somebody's manifest has something else there."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _single(key: tuple[Part, str], value: Any) -> str:
    """Of a column; the list among them comes as JSON, and what else looks like it is somebody's words."""
    return text_of(json.loads(value)) if key == _GPUS and isinstance(value, str) else text_of(value)
