"""A run against its baseline, for CI: fails only where the repeats support it, and never passes what they cannot tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from roundhouse.errors import UsageError

from .doubts import doubts_between, doubts_of, name_of
from .failing import FailureCheck, check_failures
from .judging import (
    CHECKED,
    PREFILL,
    CheckedName,
    CheckedQuantity,
    Pair,
    Values,
    fallen_silent,
    judge,
    more_is_better,
    words_of,
)
from .records import Benchmark
from .side_by_side import are_paired, prefill_values_of, shared_concurrencies, shared_lengths, values_of
from .statistics import QUANTITIES

__all__ = ["Check", "Verdict", "check"]

Verdict = Literal["passed", "passed in part", "regressed", "failures", "undecided"]
"""``failures``: more requests failed; ``undecided``: so few repeats could not show a regression of anything if there were one;
``passed in part``: what they can decide has passed, and of the rest nobody can tell."""


class Check(BaseModel):
    """What came of a check."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: Verdict
    run: str
    baseline: str
    alpha: float
    tolerance: float
    concurrencies: tuple[int, ...]
    """That both share."""
    paired: bool
    quantities: tuple[CheckedQuantity, ...]
    failures: FailureCheck
    reasons: tuple[str, ...]
    """Sentences that explain the verdict."""
    warnings: tuple[str, ...]


def check(run: Benchmark, baseline: Benchmark, *, alpha: float = 0.05, tolerance: float = 0.02, seed: int = 0) -> Check:
    """Ask whether a run is worse than its baseline.

    Args:
        run: finished.
        baseline: finished, of the same workload.
        alpha: how likely a false alarm may be, over all quantities of load together, and again of prefill.
        tolerance: a change up to this is none, however sure it is: 0.02 is 2%.
        seed: of exchanges that are drawn where there are too many to count.

    Raises:
        UsageError: the two cannot be compared.
    """
    _require_comparable(run, baseline)
    shared = shared_concurrencies(baseline, run)
    paired = are_paired(baseline, run)
    quantities = judge(_pairs(run, baseline, shared), alpha=alpha, tolerance=tolerance, paired=paired, seed=seed)
    failures = check_failures(run, baseline, shared, alpha)
    silent = list(fallen_silent(lambda name: _values(baseline, name), lambda name: _values(run, name)).values())
    reasons = silent + [_told(each, tolerance) for each in quantities if each.verdict == "regressed"]
    reasons += [failures.words] if failures.risen else []
    undecided = _undecided(quantities)
    return Check(
        verdict="regressed" if silent else _verdict(quantities, failures, undecided),
        run=run.id,
        baseline=baseline.id,
        alpha=alpha,
        tolerance=tolerance,
        concurrencies=tuple(shared),
        paired=paired,
        quantities=tuple(quantities),
        failures=failures,
        reasons=(*reasons, *undecided),
        warnings=(
            *doubts_of(baseline),
            *doubts_of(run),
            *doubts_between(baseline, run),
            *_unchecked(run, baseline, quantities),
        ),
    )


def _verdict(quantities: Sequence[CheckedQuantity], failures: FailureCheck, undecided: Sequence[str]) -> Verdict:
    """What was decided is never hidden behind what was not, and what was not never passes as if it were."""
    verdicts = {each.verdict for each in quantities}
    if "regressed" in verdicts:
        return "regressed"
    if failures.risen:
        return "failures"
    if undecided:
        return "passed in part" if "passed" in verdicts else "undecided"
    return "passed"


def _require_comparable(run: Benchmark, baseline: Benchmark) -> None:
    for each in (baseline, run):
        if each.state != "finished":
            raise UsageError(f"{name_of(each)} is {each.state}: only finished runs are checked")
    if run.header.workload.key != baseline.header.workload.key:
        raise UsageError(
            f"{name_of(run)} and {name_of(baseline)} were asked different things: "
            f"{run.header.workload.words}; {baseline.header.workload.words}",
            hint="Measure the run with the workload of its baseline.",
        )
    if not shared_concurrencies(baseline, run):
        raise UsageError(
            f"{name_of(run)} and {name_of(baseline)} share no concurrency",
            hint=f"Measure with --concurrency {','.join(map(str, baseline.header.concurrencies))}.",
        )


def _pairs(run: Benchmark, baseline: Benchmark, shared: Sequence[int]) -> dict[CheckedName, list[Pair]]:
    """What both measured: of each quantity at every shared concurrency, of prefill at every shared prompt length."""
    pairs: dict[CheckedName, list[Pair]] = {
        name: [values_of(baseline, run, concurrency, name) for concurrency in shared] for name in CHECKED
    }
    pairs[PREFILL] = [prefill_values_of(baseline, run, length) for length in shared_lengths(baseline, run)]
    return pairs


def _values(run: Benchmark, name: CheckedName) -> Values:
    """A quantity's repeats, by concurrency, or by prompt length."""
    found: defaultdict[int, list[float | None]] = defaultdict(list)
    if name == "prefill_tokens_per_s":
        for prompts in run.prefill:
            found[prompts.input_tokens].append(prompts.tokens_per_s)
    else:
        for point in run.points:
            found[point.concurrency].append(QUANTITIES[name].of(point))
    return found


def _told(checked: CheckedQuantity, tolerance: float) -> str:
    way = "down" if more_is_better(checked.quantity) else "up"
    change = abs(checked.ratio - 1)
    return f"{words_of(checked.quantity)} is {way} by {change:.1%} (tolerated: {tolerance:.1%}; p = {checked.p:.2g})"


def _undecided(quantities: Sequence[CheckedQuantity]) -> list[str]:
    """Of which quantities nobody can tell, each in a sentence."""
    if not {each.quantity for each in quantities} & set(CHECKED):
        return ["nothing that is checked of load was measured in both runs", *_whys(quantities)]
    return _whys(quantities)


def _whys(quantities: Sequence[CheckedQuantity]) -> list[str]:
    return [each.why for each in quantities if each.why is not None]


def _unchecked(run: Benchmark, baseline: Benchmark, quantities: Sequence[CheckedQuantity]) -> list[str]:
    """What a reader might believe to be checked, and is not."""
    found = []
    if missing := sorted({point.concurrency for point in baseline.points} - {point.concurrency for point in run.points}):
        found.append(f"not measured in {name_of(run)}, and so not checked: concurrency {', '.join(map(str, missing))}")
    if missing := sorted({point.input_tokens for point in baseline.prefill} - {point.input_tokens for point in run.prefill}):
        found.append(f"not measured in {name_of(run)}, and so not checked: prefill of {', '.join(map(str, missing))}")
    if without := [words_of(name) for name in CHECKED if name not in {each.quantity for each in quantities}]:
        found.append(f"not measured in both, and so not checked: {', '.join(without)}")
    empty = {
        name_of(each): sum(not point.completed for point in each.points) + sum(not point.requests for point in each.prefill)
        for each in (baseline, run)
    }
    return found + [
        f"{name}: {count} points in which no request completed are left out" for name, count in empty.items() if count
    ]
