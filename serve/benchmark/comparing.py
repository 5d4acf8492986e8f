"""Runs against a base: how many times as fast at each concurrency, how sure that is, what differs, and what to doubt."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from ..history import RecordState
from .differences import Difference, differences_of
from .doubts import doubts_between, doubts_of
from .records import Benchmark
from .side_by_side import are_paired, prefill_values_of, shared_concurrencies, shared_lengths, values_of
from .statistics import COMPARED, QuantityName, Ratio, Spread, ratio_interval

__all__ = ["ComparedPrefill", "ComparedQuantity", "ComparedRun", "Comparison", "compare"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ComparedQuantity(_Model):
    """One quantity at one concurrency: medians over repeats, and their ratio."""

    concurrency: int
    quantity: QuantityName
    base: float | None
    other: float | None
    ratio: Ratio
    """Other over base."""


class ComparedPrefill(_Model):
    """Prompt tokens a second at one prompt length."""

    input_tokens: int
    base: float | None
    other: float | None
    ratio: Ratio


class ComparedRun(_Model):
    """One run against the base."""

    id: str
    name: str
    state: RecordState
    began_at: datetime
    paired: bool
    """Whether it was measured by turns with the base: ratios are then within repeats."""
    quantities: tuple[ComparedQuantity, ...]
    prefill: tuple[ComparedPrefill, ...]


class Comparison(_Model):
    """Any number of runs against the first of them."""

    base: str
    """Its id."""
    base_name: str
    runs: tuple[ComparedRun, ...]
    """The others."""
    differences: tuple[Difference, ...]
    """Values are of the base first, then of the others."""
    warnings: tuple[str, ...]


def compare(runs: Sequence[Benchmark], *, seed: int = 0) -> Comparison:
    """Compare runs with the first of them.

    Args:
        runs: two or more.
        seed: of the resampling.

    Raises:
        ValueError: there is nothing to compare with.
    """
    if len(runs) < 2:
        raise ValueError("a comparison takes two runs")
    base, *others = runs
    warnings = [doubt for run in runs for doubt in doubts_of(run)]
    warnings += [doubt for other in others for doubt in doubts_between(base, other)]
    return Comparison(
        base=base.id,
        base_name=base.header.subject.name,
        runs=tuple(_against(base, other, seed) for other in others),
        differences=tuple(differences_of([run.header for run in runs])),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _against(base: Benchmark, other: Benchmark, seed: int) -> ComparedRun:
    paired = are_paired(base, other)
    quantities, prefill = [], []
    for concurrency in shared_concurrencies(base, other):
        for name in COMPARED:
            values = values_of(base, other, concurrency, name)
            ratio = ratio_interval(*values, paired=paired, seed=seed)
            before, now = (_median(each) for each in values)
            quantities.append(ComparedQuantity(concurrency=concurrency, quantity=name, base=before, other=now, ratio=ratio))
    for length in shared_lengths(base, other):
        values = prefill_values_of(base, other, length)
        ratio = ratio_interval(*values, paired=paired, seed=seed)
        before, now = (_median(each) for each in values)
        prefill.append(ComparedPrefill(input_tokens=length, base=before, other=now, ratio=ratio))
    return ComparedRun(
        id=other.id,
        name=other.header.subject.name,
        state=other.state,
        began_at=other.header.began_at,
        paired=paired,
        quantities=tuple(quantities),
        prefill=tuple(prefill),
    )


def _median(values: Sequence[float]) -> float | None:
    spread = Spread.of(values)
    return None if spread is None else spread.median
