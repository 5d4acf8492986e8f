"""A run against its baseline, for CI: fails only where the repeats support it, and never passes what they cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from roundhouse.errors import UsageError

from .doubts import doubts_between, doubts_of, name_of
from .failing import FailureCheck, check_failures
from .records import Benchmark
from .side_by_side import are_paired, prefill_values_of, shared_concurrencies, shared_lengths, values_of
from .statistics import QUANTITIES, QuantityName, Stratum, holm, is_worse

__all__ = ["CHECKED", "Check", "CheckedName", "CheckedQuantity", "Verdict", "check", "words_of"]

CHECKED: tuple[QuantityName, ...] = ("output_tokens_per_s", "ttft_p50", "inter_token_p50")
"""Of every run; and prefill where both have measured it."""
CheckedName = QuantityName | Literal["prefill_tokens_per_s"]
_PREFILL: CheckedName = "prefill_tokens_per_s"
_Pair = tuple[Sequence[float], Sequence[float]]
"""What the repeats of the baseline and of the run measured."""

Verdict = Literal["passed", "regressed", "failures", "undecided"]
"""``failures``: more requests failed; ``undecided``: so few repeats could not show a regression if there were one."""


class CheckedQuantity(BaseModel):
    """What came of one quantity."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    quantity: CheckedName
    ratio: float
    """Run over baseline: the geometric mean over shared concurrencies, of prefill over shared prompt lengths."""
    p: float
    """Of a change to the worse, raised (Holm) for the number of quantities."""
    least_p: float
    """The smallest that so few repeats can come to, raised likewise."""
    repeats: int
    """Of the concurrency, or prompt length, and the side with the fewest."""
    regressed: bool


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
        alpha: how likely a false alarm may be, over all quantities together.
        tolerance: a change up to this is none, however sure it is: 0.02 is 2%.
        seed: of exchanges that are drawn where there are too many to count.

    Raises:
        UsageError: the two cannot be compared.
    """
    _require_comparable(run, baseline)
    shared = shared_concurrencies(baseline, run)
    quantities = _quantities(run, baseline, shared, alpha, tolerance, seed)
    failures = check_failures(run, baseline, shared, alpha)
    reasons = [_told(each, tolerance) for each in quantities if each.regressed]
    verdict: Verdict = "regressed" if reasons else "passed"
    if failures.risen:
        verdict = verdict if reasons else "failures"
        reasons.append(failures.words)
    if verdict == "passed" and (undecided := _undecided(quantities, alpha)):
        verdict, reasons = "undecided", undecided
    return Check(
        verdict=verdict,
        run=run.id,
        baseline=baseline.id,
        alpha=alpha,
        tolerance=tolerance,
        concurrencies=tuple(shared),
        paired=are_paired(baseline, run),
        quantities=tuple(quantities),
        failures=failures,
        reasons=tuple(reasons),
        warnings=(
            *doubts_of(baseline),
            *doubts_of(run),
            *doubts_between(baseline, run),
            *_unchecked(run, baseline, quantities),
        ),
    )


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


def _quantities(
    run: Benchmark, baseline: Benchmark, shared: list[int], alpha: float, tolerance: float, seed: int
) -> list[CheckedQuantity]:
    pairs_of: dict[CheckedName, list[_Pair]] = {
        name: [values_of(baseline, run, concurrency, name) for concurrency in shared] for name in CHECKED
    }
    pairs_of[_PREFILL] = [prefill_values_of(baseline, run, length) for length in shared_lengths(baseline, run)]
    strata = {name: _strata(pairs, paired=are_paired(baseline, run)) for name, pairs in pairs_of.items()}
    tested = {name: is_worse(each, more_is_better=_more_is_better(name), seed=seed) for name, each in strata.items() if each}
    raised = holm([each.p for each in tested.values()])
    found = []
    for (name, each), p in zip(tested.items(), raised, strict=True):
        worse_by = 1 - each.ratio if _more_is_better(name) else each.ratio - 1
        found.append(
            CheckedQuantity(
                quantity=name,
                ratio=each.ratio,
                p=p,
                least_p=min(1.0, each.least_p * len(tested)),
                repeats=min(len(side) for pair in pairs_of[name] for side in pair),
                regressed=p <= alpha and worse_by > tolerance,
            )
        )
    return found


def words_of(quantity: CheckedName) -> str:
    """A checked quantity in words, for a table or a sentence."""
    return "prefill tokens/s" if quantity == "prefill_tokens_per_s" else QUANTITIES[quantity].words


def _more_is_better(quantity: CheckedName) -> bool:
    return quantity == "prefill_tokens_per_s" or QUANTITIES[quantity].more_is_better


def _strata(pairs: Sequence[_Pair], *, paired: bool) -> list[Stratum]:
    """One for each concurrency or prompt length, or for each pair of repeats where both were measured by turns."""
    found: list[Stratum] = []
    for base, other in pairs:
        if paired:
            found += [([before], [now]) for before, now in zip(base, other, strict=True)]
        else:
            found.append((base, other))
    # A repeat in which nothing was measured has no ratio; its failed requests are judged apart.
    above_zero = [([each for each in base if each > 0], [each for each in other if each > 0]) for base, other in found]
    return [stratum for stratum in above_zero if all(stratum)]


def _told(checked: CheckedQuantity, tolerance: float) -> str:
    way = "down" if _more_is_better(checked.quantity) else "up"
    change = abs(checked.ratio - 1)
    return f"{words_of(checked.quantity)} is {way} by {change:.1%} (tolerated: {tolerance:.1%}; p = {checked.p:.2g})"


def _undecided(quantities: list[CheckedQuantity], alpha: float) -> list[str]:
    missing = [QUANTITIES[name].words for name in CHECKED if name not in {each.quantity for each in quantities}]
    if len(missing) == len(CHECKED):
        return ["nothing that is checked was measured in both runs"]
    short = [each for each in quantities if each.least_p > alpha]
    if not short:
        return []
    words = ", ".join(words_of(each.quantity) for each in short)
    few = min(each.repeats for each in short)
    least = max(each.least_p for each in short)
    at = "prompt lengths" if all(each.quantity == _PREFILL for each in short) else "concurrencies"
    told = f"{few} repeats at so few {at} could not show a regression of {words}"
    return [f"{told}: p cannot come below {least:.2g}, and alpha is {alpha:g}; measure more repeats or more {at}"]


def _unchecked(run: Benchmark, baseline: Benchmark, quantities: list[CheckedQuantity]) -> list[str]:
    """What a reader might believe to be checked, and is not."""
    found = []
    if missing := sorted({point.concurrency for point in baseline.points} - {point.concurrency for point in run.points}):
        found.append(f"not measured in {name_of(run)}, and so not checked: concurrency {', '.join(map(str, missing))}")
    if missing := sorted({point.input_tokens for point in baseline.prefill} - {point.input_tokens for point in run.prefill}):
        found.append(f"not measured in {name_of(run)}, and so not checked: prefill of {', '.join(map(str, missing))}")
    if without := [QUANTITIES[name].words for name in CHECKED if name not in {each.quantity for each in quantities}]:
        found.append(f"not measured in both, and so not checked: {', '.join(without)}")
    empty = {
        name_of(each): sum(not point.completed for point in each.points) + sum(not point.requests for point in each.prefill)
        for each in (baseline, run)
    }
    return found + [
        f"{name}: {count} points in which no request completed are left out" for name, count in empty.items() if count
    ]
