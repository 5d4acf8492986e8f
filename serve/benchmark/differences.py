"""What differs between runs besides their speed: recipe, settings, versions, workload, load, hardware."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from .records import BenchmarkHeader

__all__ = ["ABSENT", "Difference", "Part", "differences_of"]

Part = Literal["subject", "recipe", "settings", "versions", "built with", "workload", "load", "hardware"]
ABSENT = "—"
"""In place of a value where a run does not have the key."""
_SUBJECT = ("name", "model", "engine_id", "url", "server")
_LOAD = ("driver", "driver_version", "concurrencies", "repeats", "prefill_lengths", "seed")
_PASSING = ("free_memory",)
"""Of hardware: true for a moment only."""


class Difference(BaseModel):
    """One key in which runs differ."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    part: Part
    key: str
    """With dots where it is nested: ``calibration.samples``."""
    values: tuple[str, ...]
    """One for each run, in their order."""

    @property
    def words(self) -> str:
        """In a line: ``recipe kv_cache: bf16 → fp8``."""
        return f"{self.part} {self.key}: {' → '.join(self.values)}"


def differences_of(headers: Sequence[BenchmarkHeader]) -> list[Difference]:
    """Every key that is not the same in all of them, by part and name."""
    facts = [dict(_facts(header)) for header in headers]
    keys = dict.fromkeys(key for each in facts for key in each)
    found = []
    for part, key in keys:
        values = tuple(_text(each.get((part, key))) for each in facts)
        if len(set(values)) > 1:
            found.append(Difference(part=part, key=key, values=values))
    return found


def _facts(header: BenchmarkHeader) -> Iterator[tuple[tuple[Part, str], Any]]:
    subject, where = header.subject, header.environment
    hardware = where.hardware.model_dump(mode="json", exclude=set(_PASSING)) if where.hardware else {}
    parts: list[tuple[Part, Mapping[str, Any]]] = [
        ("subject", subject.model_dump(mode="json", include=set(_SUBJECT))),
        ("recipe", {key: value for key, value in subject.recipe.items() if key not in _SUBJECT}),
        ("settings", subject.settings or {}),
        ("versions", where.versions),
        ("built with", (subject.manifest or {}).get("versions", {})),
        ("workload", header.workload.model_dump(mode="json", exclude={"name"})),
        ("load", header.model_dump(mode="json", include=set(_LOAD))),
        ("hardware", {"host": where.host, **hardware, "gpus": list(where.gpus), "driver": where.driver}),
    ]
    for part, values in parts:
        for key, value in _flat(values):
            yield (part, key), value


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _text(value: Any) -> str:
    if value is None or value == []:
        return ABSENT
    if isinstance(value, list):
        return ", ".join(_text(each) for each in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value)
