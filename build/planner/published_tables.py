"""The published numbers that the planner is held against, and the settings behind each (data in ``published.json``)."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

from .formats import WeightFormat, format_called
from .kv_layout import KvDtype

__all__ = ["Basis", "IndexerLayers", "PublishedNumber", "PublishedTables", "Section", "Settings", "WeightForm", "read_tables"]

Section = Literal["fp8_kv", "int4_weights", "reference"]

Basis = Literal["derived", "fitted", "published only"]
"""From dimensions and settings alone; with a constant that was fitted to a published number; not predicted at all."""

Quantity = Literal["parameters", "parameters_with_mtp", "checkpoint", "kv_bytes_per_token", "kv_tokens", "decode"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WeightForm(_Record):
    """A weight format by its name; ``group`` is the INT4 group size."""

    format: Literal["bf16", "fp8", "fp8_block", "int4", "nvfp4", "mxfp4"] = "bf16"
    group: int | None = None

    @property
    def stored(self) -> WeightFormat:
        """What it takes in bytes."""
        return format_called(self.format, self.group)

    def __str__(self) -> str:
        return self.format + (f" g{self.group}" if self.group else "")


class IndexerLayers(_Record):
    """How many layers ``held`` an indexer and its keys in the engine's memory, and of how many the keys were ``read``."""

    held: int
    read: int


class Settings(_Record):
    """What a published number was measured with, as far as it decides the number.

    Keys that end in ``_from`` name the row that a constant is fitted to. A target's own habits do not enter: the
    numbers come from engines that this package has no target for.
    """

    shape: str
    """A shipped shape."""
    engine: str | None = None
    gpu: str | None = None
    """One of the planner's table of GPUs."""
    tensor_parallel: int = 1
    routed: WeightForm = WeightForm()
    """Of routed experts."""
    linear: WeightForm = WeightForm()
    """Of all other linears."""
    absorbed: Literal["none", "keys", "both"] = "none"
    """Which parts of latent attention's kv_b_proj the engine held once more in 16 bits."""
    indexer_layers: IndexerLayers | None = None
    """None: those of the model."""
    kv_cache: KvDtype = "bf16"
    kv_layout: Literal["plain", "flashmla-fp8"] = "plain"
    kv_pool_gib: float | None = None
    """The pool on one GPU, where an engine's log tells it."""
    free_gib: float | None = None
    """Free on one GPU before anything is loaded."""
    memory_fraction: float | None = None
    memory_fraction_from: str | None = None
    context: int | None = None
    """Tokens of a request while it decodes: prompt and half of the answer."""
    t0_from: str | None = None
    kv_time_from: str | None = None


class PublishedNumber(_Record):
    """One published number; predicted from ``quantity``, from two other rows (``ratio_of``), or not at all."""

    section: Section
    what: str
    settings: str
    quantity: Quantity | None = None
    ratio_of: tuple[str, str] | None = None
    shared_by: int = 1
    """How many GPUs a checkpoint is divided by."""
    concurrency: int = 1
    published: float
    unit: str
    tolerance_percent: float | None = None
    basis: Basis
    source: str
    note: str | None = None


class PublishedTables(_Record):
    """Everything in ``published.json``."""

    note: str
    settings: dict[str, Settings]
    rows: dict[str, PublishedNumber]


def read_tables() -> PublishedTables:
    """The published numbers that ship with the planner."""
    return PublishedTables.model_validate(json.loads(files(__package__).joinpath("published.json").read_text()))
