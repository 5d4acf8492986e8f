"""What came of a drill: by kind of fault and level, in numbers and in a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log, log1p
from typing import Any, Self

import msgspec

from .episode import EpisodeResult
from .kinds import KINDS, FaultName
from .levels import Level

__all__ = ["REPORT_FORMAT", "DrillReport", "Failure", "KindReport", "count_up", "report_as_json"]

REPORT_FORMAT = "roundhouse.drill/1"
"""What a report as JSON calls itself."""

_LEAST_LIKELY = 1e-6
"""A sampled level fails when so few faults were stopped that chance alone would not come to it once in a million drills."""


class KindReport(msgspec.Struct, kw_only=True):
    """All faults of one kind at one level."""

    fault: FaultName | None
    """None: engines without faults, in which nothing may be found."""
    guard: str
    guard_sample: float | None
    """How likely a full page's content is compared before a step; None where contents are not compared."""
    probability: float
    """How likely a fault of this kind is stopped in time here, at least: 1 must be, 0 nobody claims."""
    injected: int = 0
    effective: int = 0
    """Somebody was about to run with it."""
    detected: int = 0
    """Everybody whom it hit was stopped before running with it."""
    wrong_rows_run: int = 0
    """Rows that ran on a page that was not their own, or not as it was written."""
    leaked_tokens: int = 0
    """Tokens that came out of whoever did."""
    false_alarms: int = 0
    """Rows stopped although nothing was wrong with them."""
    delay_steps: int = 0
    """The most steps from the first that a fault could have hit to the one it was found before."""
    unexplained: int = 0
    """Rows that were wrong by no fault that was put in: a mistake of the engine's own."""
    errors: int = 0
    """Engines that broke down, or whose answers did not end."""
    steps: int = 0
    grants: int = 0

    @property
    def passed(self) -> bool:
        """Whether the level did what it must."""
        if self.false_alarms or self.unexplained or self.errors:
            return False
        if self.probability == 1:
            return self.detected == self.effective and not (self.wrong_rows_run or self.leaked_tokens or self.delay_steps)
        return _chance_of_so_few(self.detected, self.effective, self.probability) > _LEAST_LIKELY

    @property
    def is_judged(self) -> bool:
        """Whether it could have failed: enough faults were effective for a sample that finds nothing to be no chance."""
        return self.fault is None or _chance_of_so_few(0, self.effective, min(self.probability, 0.999)) <= _LEAST_LIKELY


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An episode in which a level did not do what it must."""

    fault: FaultName | None
    guard: str
    guard_sample: float | None
    seed: int
    """A drill that begins with it plays the same again."""
    steps: int
    """So many of them are enough: 1 for a single episode."""
    why: str

    @classmethod
    def of(cls, report: KindReport, seed: int, steps: int, error: str | None = None) -> Self:
        """The failure of one episode, or of many together."""
        late = report.effective - report.detected
        what = f"{late} of {report.effective} faults not stopped in time, {report.wrong_rows_run} wrong rows run"
        what += f", {report.leaked_tokens} tokens leaked, {report.false_alarms} false alarms"
        what += f", {report.unexplained} rows wrong by no fault" if report.unexplained else ""
        return cls(
            fault=report.fault,
            guard=report.guard,
            guard_sample=report.guard_sample,
            seed=seed,
            steps=steps,
            why=f"{what}, {error}" if error else what,
        )


class DrillReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole drill."""

    seed: int
    engine: str | None
    """Id of the engine whose model ran; None: no model."""
    steps: int
    grants: int
    faults: int
    preemptions: int
    cached_tokens: int
    """Prompt tokens found in pages of others."""
    passed: bool
    kinds: list[KindReport]
    failures: list[Failure]


def report_as_json(report: DrillReport) -> dict[str, Any]:
    """The report as plain values, with its format's name and what became of each kind."""
    values: dict[str, Any] = msgspec.to_builtins(report)
    for row, kind in zip(values["kinds"], report.kinds, strict=True):
        row |= {"passed": kind.passed, "judged": kind.is_judged}
    return {"format": REPORT_FORMAT, **values}


def count_up(level: Level, kind: FaultName | None, results: Sequence[EpisodeResult]) -> KindReport:
    """Sum up episodes of one kind at one level."""
    faults = [fault for result in results for fault in result.faults]
    effective = [fault for fault in faults if fault.effective is not None]
    delays = (fault.found - fault.effective for fault in effective if fault.found and fault.effective)
    return KindReport(
        fault=kind,
        guard=level.guard,
        guard_sample=level.share if level.guard == "tags+content" else None,
        probability=1.0 if kind is None else level.probability(KINDS[kind]),
        injected=len(faults),
        effective=len(effective),
        detected=sum(fault.found is not None and not (fault.ran or fault.leaked) for fault in effective),
        wrong_rows_run=sum(fault.ran for fault in faults),
        leaked_tokens=sum(fault.leaked for fault in faults),
        false_alarms=sum(result.false_alarms for result in results),
        delay_steps=max(delays, default=0),
        unexplained=sum(result.unexplained for result in results),
        errors=sum(result.error is not None for result in results),
        steps=sum(result.steps for result in results),
        grants=sum(result.grants for result in results),
    )


def _chance_of_so_few(found: int, of: int, probability: float) -> float:
    """How likely it is that so few, or fewer, of independent faults are found."""
    if probability == 0:
        return 1.0
    yes, no = log(probability), log1p(-probability)
    logs = (lgamma(of + 1) - lgamma(k + 1) - lgamma(of - k + 1) + k * yes + (of - k) * no for k in range(found + 1))
    return sum(exp(each) for each in logs)
