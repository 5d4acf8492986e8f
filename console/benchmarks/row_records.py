"""What the page shows that sets engines beside each other: bytes, memory, speed, cost, accuracy and integrity in one row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["SORTED_BY", "EngineFacts", "EngineWanted", "EnginesAsked", "RowSort"]

RowSort = Literal[
    "name", "-name", "model", "-model", "checkpoint", "-checkpoint", "kv_planned", "-kv_planned", "kv_real", "-kv_real",
    "speed", "-speed", "prefill", "-prefill", "price", "-price", "accuracy", "-accuracy", "integrity", "-integrity",
    "when", "-when",
]  # fmt: skip
"""What rows are sorted by; with ``-`` the greatest come first. Rows without a value come last."""


class EngineWanted(BaseModel):
    """Which engines are shown, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: int = Field(default=8, ge=1, le=100_000)
    """The concurrency of speed and price."""
    price: float | None = Field(default=None, gt=0, le=100_000, allow_inf_nan=False)
    """Of an hour of one GPU, or of a machine without one. None: the price of the settings, if there is one."""
    model: str | None = None


@dataclass(frozen=True)
class EngineFacts:
    """An engine with what is known of it."""

    id: str
    name: str
    model: str
    target: str
    role: str
    weights: str
    kv_cache: str
    checkpoint_bytes: int
    kv_planned: int
    """Tokens, as planned on the machine that built it."""
    run: str | None
    """The benchmark run that speed and integrity are of."""
    run_at: datetime | None
    hardware: str | None
    devices: int
    """That the price is paid for: GPUs, or one machine."""
    kv_real: int | None
    """Tokens that the pool held in that run."""
    speed: float | None
    """Output tokens a second at the concurrency asked for."""
    noisy: bool
    """Whether a repeat of it was disturbed."""
    prefill: float | None
    """Tokens a second, the most of the prompt lengths."""
    prefill_run: str | None
    price: float | None
    """Of a million output tokens at that speed."""
    evaluation: str | None
    accuracy: float | None
    """Points of 100 of the task that is furthest down against the base; negative is worse."""
    gate: str | None
    checks: int | None
    """Page tags compared during the run; None where the engine did not count."""
    mismatches: int | None
    """Of tags and of contents."""
    events: int
    """Rows that page checks have stopped while it served."""

    @property
    def integrity(self) -> int:
        """What was found: mismatches of the run, and events."""
        return (self.mismatches or 0) + self.events


SORTED_BY: dict[str, Callable[[EngineFacts], str | float | None]] = {
    "name": lambda row: row.name,
    "model": lambda row: row.model,
    "checkpoint": lambda row: row.checkpoint_bytes,
    "kv_planned": lambda row: row.kv_planned,
    "kv_real": lambda row: row.kv_real,
    "speed": lambda row: row.speed,
    "prefill": lambda row: row.prefill,
    "price": lambda row: row.price,
    "accuracy": lambda row: row.accuracy,
    "integrity": lambda row: row.integrity,
    "when": lambda row: None if row.run_at is None else row.run_at.timestamp(),
}
"""By the keys of :data:`RowSort`."""


@dataclass(frozen=True)
class EnginesAsked:
    """Engines side by side."""

    rows: tuple[EngineFacts, ...]
    """Sorted."""
    concurrencies: tuple[int, ...]
    """That any engine was measured at."""
    price: float | None
    """Of an hour."""
