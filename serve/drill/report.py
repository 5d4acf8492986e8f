"""What came of a drill: by kind of fault and level, in numbers and in a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import msgspec

from .episode import EpisodeResult
from .kinds import KINDS, FaultName
from .levels import Level

__all__ = ["DrillReport", "Failure", "KindReport", "count_up"]


class KindReport(msgspec.Struct, kw_only=True):
    """All faults of one kind at one level."""

    fault: FaultName | None
    """None: engines without faults, in which nothing may be found."""
    guard: str
    guard_sample: float | None
    """How likely a page's content is compared before a step; None where contents are not compared."""
    sees: bool
    """Whether this level must find every one of them before a token comes out."""
    injected: int = 0
    effective: int = 0
    """Somebody was about to run with it."""
    detected: int = 0
    """Everybody whom it hit was stopped before a token came out."""
    leaked_tokens: int = 0
    """Tokens that came out of somebody who ran on a page that was not its own or not as it was written."""
    false_alarms: int = 0
    """Rows stopped although nothing was wrong with them."""
    delay_steps: int = 0
    """The most steps that ran between the first that a fault had an effect in and the one it was found before."""
    steps: int = 0
    grants: int = 0

    @property
    def passed(self) -> bool:
        """Whether the level did what it must."""
        return not (self.false_alarms or (self.sees and (self.leaked_tokens or self.detected < self.effective)))


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An episode in which a level did not do what it must."""

    fault: FaultName | None
    guard: str
    guard_sample: float | None
    seed: int
    """Of the episode: a drill of as many steps that begins with it plays it first, exactly."""
    why: str

    @classmethod
    def of(cls, report: KindReport, seed: int) -> Self:
        """The failure of an episode that did not pass."""
        late = report.effective - report.detected
        what = f"{late} of {report.effective} faults not stopped in time, {report.leaked_tokens} tokens leaked"
        return cls(
            fault=report.fault,
            guard=report.guard,
            guard_sample=report.guard_sample,
            seed=seed,
            why=f"{what}, {report.false_alarms} false alarms",
        )


class DrillReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole drill."""

    seed: int
    engine: str | None
    """Id of the engine whose model ran; None: no model."""
    steps: int
    grants: int
    faults: int
    passed: bool
    kinds: list[KindReport]
    failures: list[Failure]


def count_up(level: Level, kind: FaultName | None, results: Iterable[EpisodeResult]) -> KindReport:
    """Sum up episodes of one kind at one level."""
    content = level.guard == "tags+content"
    report = KindReport(
        fault=kind,
        guard=level.guard,
        guard_sample=level.share if content else None,
        sees=kind is None or (level.sees(KINDS[kind]) and not (level.samples and KINDS[kind].seen_by == "content")),
    )
    for result in results:
        effective = [fault for fault in result.faults if fault.effective is not None]
        delays = [fault.found - fault.effective for fault in effective if fault.found and fault.effective]
        report.injected += len(result.faults)
        report.effective += len(effective)
        report.detected += sum(fault.found is not None and not fault.leaked for fault in effective)
        report.leaked_tokens += sum(fault.leaked for fault in result.faults)
        report.false_alarms += result.false_alarms + result.unexplained
        report.delay_steps = max([report.delay_steps, *delays])
        report.steps += result.steps
        report.grants += result.grants
    return report
