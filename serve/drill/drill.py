"""The drill: episode after episode, for every kind of fault and every level, decided by one seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from roundhouse.build.events import OnStep

from .episode import Episode, EpisodeResult, Ground
from .kinds import KINDS, FaultName
from .levels import Level
from .report import DrillReport, Failure, KindReport, count_up

__all__ = ["Case", "cases_of", "run_drill"]

Case = tuple[Level, FaultName | None]
"""A level, and the kind of faults that are put in; None: none at all."""


def cases_of(levels: Sequence[Level], kinds: Sequence[FaultName | None]) -> list[Case]:
    """Every kind at every level. Where contents are only sampled, kinds that no sample decides would be the same once more."""
    return [
        (level, kind)
        for level in levels
        for kind in kinds
        if not level.samples or (kind is not None and KINDS[kind].is_sampled)
    ]


def run_drill(
    ground: Callable[[Random], Ground],
    cases: Sequence[Case],
    *,
    seed: int,
    steps: int,
    engine: str | None = None,
    on_case: OnStep = lambda *_: None,
) -> DrillReport:
    """Run a drill.

    Args:
        ground: makes what an episode is played on.
        cases: what is played.
        seed: decides everything. Episode number n of a case is decided by ``seed + n`` alone.
        steps: of each case, at least; the last episode is always played to its end.
        engine: id of the engine whose model runs.
        on_case: told how many cases of all are behind us.
    """
    reports: list[KindReport] = []
    failures: list[Failure] = []
    everything: list[EpisodeResult] = []
    for number, (level, kind) in enumerate(cases):
        on_case(number, len(cases))
        results = list(_episodes(ground, level, kind, seed, steps))
        report = count_up(level, kind, results)
        ones = [count_up(level, kind, [result]) for result in results]
        failed = [Failure.of(one, seed + n, 1, results[n].error) for n, one in enumerate(ones) if not one.passed]
        if not report.passed and not failed:  # each by itself might have been chance
            failed = [Failure.of(report, seed, steps)]
        reports.append(report)
        failures += failed
        everything += results
    return DrillReport(
        seed=seed,
        engine=engine,
        steps=sum(report.steps for report in reports),
        grants=sum(report.grants for report in reports),
        faults=sum(report.injected for report in reports),
        preemptions=sum(result.preemptions for result in everything),
        cached_tokens=sum(result.cached_tokens for result in everything),
        passed=not failures,
        kinds=reports,
        failures=failures,
    )


def _episodes(
    ground: Callable[[Random], Ground], level: Level, kind: FaultName | None, seed: int, steps: int
) -> Iterator[EpisodeResult]:
    run = 0
    while run < steps:
        result = Episode(ground(Random(f"ground {seed}")), level, kind, seed).play()
        yield result
        run += result.steps
        seed += 1
