"""What speaks against comparing runs: said, never hidden."""

from __future__ import annotations

from collections.abc import Sequence

from .points import Point, PrefillPoint
from .records import Benchmark, BenchmarkHeader
from .side_by_side import shared_concurrencies
from .statistics.ratios import LEAST_REPEATS

__all__ = ["doubts_between", "doubts_of", "name_of"]

_MOST_CACHED = 0.05
"""Of prompts that share nothing: random ones begin alike now and then, and pages are found again after a preemption."""


def name_of(run: Benchmark) -> str:
    """What a sentence calls a run: its id and what it measured."""
    return f"{run.id} ({run.header.subject.name})"


def doubts_of(run: Benchmark) -> list[str]:
    """About one run."""
    name, found = name_of(run), []
    if run.state != "finished":
        found.append(f"{name} is {run.state}: only what it has measured so far is compared")
    measured: list[Point | PrefillPoint] = [*run.points, *run.prefill]
    if noisy := sum(point.noisy for point in measured):
        found.append(f"{name}: others on the machine disturbed {noisy} of {len(measured)} points")
    if failed := sum(point.failures for point in measured):
        kinds = ", ".join(sorted({kind for point in measured for kind in point.failed}))
        found.append(f"{name}: {failed:,} requests failed ({kinds}); tokens of failed requests count for nothing")
    if (share := _found_in_cache(run)) > _MOST_CACHED:
        found.append(
            f"{name}: {share:.0%} of all prompt tokens were in the server's prefix cache, though prompts share nothing: "
            "their prefill was not measured"
        )
    repeats = [sum(point.concurrency == level for point in run.points) for level in {each.concurrency for each in run.points}]
    if repeats and min(repeats) < LEAST_REPEATS:
        found.append(f"{name}: fewer than {LEAST_REPEATS} repeats, so there are no intervals")
    return found


def doubts_between(base: Benchmark, other: Benchmark) -> list[str]:
    """About setting one run against another."""
    found, names = [], f"{name_of(base)} and {name_of(other)}"
    first, second = base.header, other.header
    if first.workload.key != second.workload.key:
        found.append(f"{names} were asked different things: {first.workload.words}; {second.workload.words}")
    if first.ran_on != second.ran_on:
        found.append(f"{names} ran on different hardware: {first.ran_on or 'not known'}; {second.ran_on or 'not known'}")
    if first.subject.url is not None and first.subject.url == second.subject.url and _same_seed(first, second):
        found.append(
            f"{names} asked {first.subject.url} the same prompts: its prefix cache may have known them the second time"
        )
    if first.driver != second.driver:
        found.append(f"{names} got their load from different drivers: {first.driver}; {second.driver}")
    if (ours := _tokens_from(base)) and (theirs := _tokens_from(other)) and ours != theirs:
        found.append(f"{names} count tokens differently: by {' and '.join(ours)}; by {' and '.join(theirs)}")
    if base.points and other.points and not shared_concurrencies(base, other):
        found.append(f"{names} share no concurrency")
    return found


def _same_seed(one: BenchmarkHeader, other: BenchmarkHeader) -> bool:
    return one.seed is not None and one.seed == other.seed


def _found_in_cache(run: Benchmark) -> float:
    """The part of prompt tokens that was not computed, where every prompt should have been."""
    workload = run.header.workload
    unshared: list[Point | PrefillPoint] = [*run.prefill]
    if workload.kind == "synthetic" and not workload.prefix_tokens:
        unshared += run.points
    counts = [point.engine for point in unshared if point.engine is not None]
    prompts = sum(each.prompt_tokens for each in counts)
    return sum(each.cached_tokens for each in counts) / prompts if prompts else 0.0


def _tokens_from(run: Benchmark) -> Sequence[str]:
    return sorted({point.tokens_from for point in run.points})
