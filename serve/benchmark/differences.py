"""What differs between runs besides their speed: recipe, settings, versions, workload, load, hardware."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from .records import BenchmarkHeader

__all__ = ["ABSENT", "Difference", "Facts", "Part", "differences_of", "facts_of", "line_up", "text_of"]

Part = Literal["subject", "recipe", "settings", "workload", "hardware", "versions", "built with", "load"]
"""In the order in which they are told."""
Facts = Mapping[tuple[Part, str], str]
"""What there is to say of one run, by part and key."""
ABSENT = "—"
"""In place of a value where a run does not have the key."""
_SUBJECT = ("name", "model", "engine_id", "url", "server")
_LOAD = ("driver", "driver_version", "concurrencies", "repeats", "prefill_lengths", "seed")
_NOT_TOLD: dict[Part, tuple[str, ...]] = {"recipe": _SUBJECT, "workload": ("name",), "hardware": ("free_memory",)}
"""What is told elsewhere, and what was true for a moment only."""


class Difference(BaseModel):
    """One key, and what it is for each run."""

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

    @property
    def is_equal(self) -> bool:
        """Whether it is the same everywhere, and so none."""
        return len(set(self.values)) == 1

    @property
    def runs_by_value(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Each value once, the commonest first, with the places of the runs that have it."""
        places: dict[str, list[int]] = {}
        for place, value in enumerate(self.values):
            places.setdefault(value, []).append(place)
        return tuple((value, tuple(there)) for value, there in sorted(places.items(), key=lambda each: -len(each[1])))


def differences_of(headers: Sequence[BenchmarkHeader]) -> list[Difference]:
    """Every key that is not the same in all of them, by part and name."""
    facts = [_facts_of_header(header) for header in headers]
    return [each for each in line_up(facts) if not each.is_equal]


def line_up(facts: Sequence[Facts]) -> tuple[Difference, ...]:
    """Everything that is known of any of the runs, part by part."""
    order = get_args(Part)
    keys = dict.fromkeys(key for each in facts for key in each)
    return tuple(
        Difference(part=part, key=key, values=tuple([each.get((part, key), ABSENT) for each in facts]))
        for part, key in sorted(keys, key=lambda each: order.index(each[0]))
    )


def facts_of(part: Part, values: Mapping[str, Any]) -> dict[tuple[Part, str], str]:
    """What a part of a run says, nested keys with dots; without what is told elsewhere, or was true for a moment only."""
    told = {key: value for key, value in values.items() if key not in _NOT_TOLD.get(part, ())}
    return {(part, key): text_of(value) for key, value in _flat(told)}


def text_of(value: Any) -> str:
    """A value in words."""
    if value is None or value == []:
        return ABSENT
    if isinstance(value, list):
        return ", ".join(text_of(each) for each in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value)


def _facts_of_header(header: BenchmarkHeader) -> Facts:
    subject, where = header.subject, header.environment
    hardware = where.hardware.model_dump(mode="json") if where.hardware else {}
    parts: dict[Part, Mapping[str, Any]] = {
        "subject": subject.model_dump(mode="json", include=set(_SUBJECT)),
        "recipe": subject.recipe,
        "settings": subject.settings or {},
        "workload": header.workload.model_dump(mode="json"),
        "hardware": {"host": where.host, **hardware, "gpus": list(where.gpus), "driver": where.driver},
        "versions": where.versions,
        "built with": (subject.manifest or {}).get("versions", {}),
        "load": header.model_dump(mode="json", include=set(_LOAD)),
    }
    found: dict[tuple[Part, str], str] = {}
    for part, values in parts.items():
        found |= facts_of(part, values)
    return found


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
