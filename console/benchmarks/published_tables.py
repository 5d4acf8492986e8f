"""Published tables as pages show them: what was, what became of it with a technique, and where that was told.

Speeds, bytes and capacities are the planner's (:mod:`roundhouse.build.planner.published_tables`); ``published.json`` beside
this module has what no plan predicts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from roundhouse.build.planner.published_tables import PublishedNumber, read_tables

__all__ = ["Line", "PublishedTable", "Technique", "published_tables"]

Technique = str
"""``kv_cache``, ``weights``, ``guard`` or ``accuracy``: what is changed between the two columns."""


@dataclass(frozen=True)
class Line:
    """One quantity before and after."""

    label: str
    before: float | str | None
    after: float | str | None
    unit: str = ""
    percent: float | None = None
    """The change where only that is told."""
    note: str = ""

    @property
    def change(self) -> float | None:
        """In percent; None where a side is not known."""
        if self.percent is not None:
            return self.percent
        if isinstance(self.before, float) and isinstance(self.after, float) and self.before:
            return 100 * (self.after / self.before - 1)
        return None


@dataclass(frozen=True)
class PublishedTable:
    """What was published of one technique."""

    technique: Technique
    title: str
    model: str
    setup: str
    """Engine, hardware, requests."""
    before: str
    after: str
    lines: tuple[Line, ...]
    sources: tuple[str, ...]


class _Integrity(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    workload: str
    change_percent: Mapping[int, float]
    tail_latency: str
    source: str


class _Accuracy(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    scores: Mapping[str, float]
    valid_tool_calls_percent: float
    with_: str
    source: str


@lru_cache(maxsize=1)
def published_tables() -> tuple[PublishedTable, ...]:
    """All of them."""
    rows = read_tables().rows
    more = json.loads(files(__package__).joinpath("published.json").read_text())
    integrity = _Integrity.model_validate(more["integrity"])
    accuracy = _Accuracy.model_validate({("with_" if key == "with" else key): value for key, value in more["accuracy"].items()})
    return (_fp8_kv(rows), _int4_weights(rows), _integrity(integrity), _accuracy(accuracy, rows["glm-accuracy-drop"]))


def _fp8_kv(rows: Mapping[str, PublishedNumber]) -> PublishedTable:
    lines = (
        _line(rows, "KV tokens", "kimi-bf16-kv-tokens", "kimi-fp8-kv-tokens", ""),
        _line(rows, "Output at 1", "kimi-bf16-kv-1", None),
        _line(rows, "Output at 8", "kimi-bf16-kv-8", None),
        _line(rows, "Output at 16", "kimi-bf16-kv-16", None),
        _line(rows, "Output at 32", "kimi-bf16-kv-32", "kimi-fp8-kv-32"),
        Line("Output at 64", "out of memory", rows["kimi-fp8-kv-64"].published, "tokens/s"),
        Line("Most output", None, None, percent=100 * (rows["kimi-peak-gain"].published - 1)),
        Line("Cost per token at these", None, None, percent=100 * (rows["kimi-cost-per-token"].published - 1)),
    )
    used = [rows[name] for name in rows if name.startswith("kimi-") and rows[name].section == "fp8_kv"]
    return PublishedTable(
        "kv_cache", "FP8 KV cache", "Kimi-K2.6", "8 × H200 (capture)", "BF16 KV", "FP8 KV", lines, _sources(used)
    )


def _int4_weights(rows: Mapping[str, PublishedNumber]) -> PublishedTable:
    lines = (
        _line(rows, "Checkpoint", "glm-fp8-checkpoint", "glm-int4-checkpoint", "GiB"),
        _line(rows, "KV tokens", None, "glm-int4-kv-tokens", ""),
        _line(rows, "Output at 1", "glm-fp8-1", "glm-int4-1"),
        _line(rows, "Output at 8", "glm-fp8-8", None),
        _line(rows, "Output at 16", "glm-fp8-16", None),
        _line(rows, "Output at 32", "glm-fp8-32", "glm-int4-32"),
        _line(rows, "Output at 64", "glm-fp8-64", None),
        _line(rows, "Prefill", "glm-fp8-prefill", "glm-int4-prefill"),
    )
    used = [row for row in rows.values() if row.section == "int4_weights" and "#" not in row.source]
    return PublishedTable(
        "weights", "INT4 weights", "GLM-5.2", "tensor parallel 8", "FP8 weights", "INT4 weights", lines, _sources(used)
    )


def _integrity(found: _Integrity) -> PublishedTable:
    lines = tuple(Line(f"Output at {n}", None, None, percent=change) for n, change in found.change_percent.items())
    setup = f"{found.workload}; {found.tail_latency}"
    return PublishedTable("guard", "Page checks", "model not told", setup, "off", "on", lines, (found.source,))


def _accuracy(found: _Accuracy, drop: PublishedNumber) -> PublishedTable:
    lines = [Line(task, score, None, "%") for task, score in found.scores.items()]
    lines.append(Line("valid tool calls", found.valid_tool_calls_percent, None, "%"))
    lines.append(Line("largest drop with INT4 weights", None, f"at most {drop.published:g} points", note="of GLM-5.2"))
    return PublishedTable(
        "accuracy", "Accuracy", "Kimi-K2.6", "with a KV cache in BF16", found.with_, "after", tuple(lines), (found.source,)
    )


def _line(
    rows: Mapping[str, PublishedNumber], label: str, before: str | None, after: str | None, unit: str = "tokens/s"
) -> Line:
    sides = [rows[name] for name in (before, after) if name is not None]
    captured = any("capture" in row.source for row in sides)
    first, second = (float(rows[name].published) if name is not None else None for name in (before, after))
    return Line(label, first, second, unit, note="capture" if captured else "")


def _sources(rows: list[PublishedNumber]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.source for row in rows))
