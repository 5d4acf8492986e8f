"""Whether quantities are worse than in a baseline: the rule of `bench check`, and of whoever follows runs over time.

Where nothing comes out any more that did, no test is needed: that is a regression, whether requests fail or just nothing does.

There are two families of questions, of load and of prefill: a false alarm in one of them is no likelier than ``alpha``, however
many quantities it has (Holm). Prefill is a family of its own because it is another measurement, whose answer must not depend on
how much else was asked. A quantity whose repeats are so few that nothing could show is ``undecided``, and says what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from .statistics import QUANTITIES, QuantityName, Stratum, Tested, holm, is_worse, least_possible_p

__all__ = [
    "CHECKED",
    "FAMILIES",
    "PREFILL",
    "CheckedName",
    "CheckedQuantity",
    "Pair",
    "QuantityVerdict",
    "Values",
    "fallen_silent",
    "judge",
    "more_is_better",
    "words_of",
    "worse_by",
]

CheckedName = QuantityName | Literal["prefill_tokens_per_s"]
CHECKED: tuple[QuantityName, ...] = ("output_tokens_per_s", "ttft_p50", "inter_token_p50")
"""Of every run; and prefill where both have measured it."""
PREFILL: CheckedName = "prefill_tokens_per_s"
FAMILIES: tuple[tuple[CheckedName, ...], ...] = (CHECKED, (PREFILL,))
"""Each is corrected for its own number of questions."""

_NOTHING: tuple[tuple[CheckedName, str], ...] = (
    (CHECKED[0], "no tokens came out at {} at once"),
    (PREFILL, "no prompt of {} tokens was answered"),
)

Values = Mapping[int, Sequence[float | None]]
"""Of one quantity, by concurrency, or by prompt length: each repeat; 0 or None where nothing was measured."""
Pair = tuple[Sequence[float], Sequence[float]]
"""What the repeats of the baseline and of the run measured at one concurrency, or at one prompt length."""
QuantityVerdict = Literal["passed", "regressed", "undecided"]

_MOST_REPEATS = 100
"""As many as a run can have."""
_ROUNDING = 1e-9
"""A p-value of 3 times a sixtieth is one of a twentieth."""


class CheckedQuantity(BaseModel):
    """What came of one quantity."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    quantity: CheckedName
    verdict: QuantityVerdict
    ratio: float
    """Run over baseline: the geometric mean over shared concurrencies, of prefill over shared prompt lengths."""
    p: float
    """Of a change to the worse, raised (Holm) for the number of quantities in its family."""
    least_p: float
    """The smallest that so few repeats can come to, raised likewise."""
    repeats: int
    """Of the concurrency, or prompt length, and the side with the fewest."""
    why: str | None = None
    """Why it is undecided, and what it takes, in a sentence; None where it is not."""


def judge(
    pairs_of: Mapping[CheckedName, Sequence[Pair]], *, alpha: float, tolerance: float, paired: bool = False, seed: int = 0
) -> list[CheckedQuantity]:
    """Judge each quantity of which both sides have anything.

    Args:
        pairs_of: a pair for each shared concurrency, or prompt length. Repeats in which nothing was measured, zeros, count
            for nothing: their failed requests are judged apart.
        alpha: how likely a false alarm may be, over a family of quantities together.
        tolerance: a change up to this is none, however sure it is: 0.02 is 2%.
        paired: whether both were measured by turns: repeats are then compared pair by pair.
        seed: of exchanges that are drawn where there are too many to count.
    """
    found = []
    for family in FAMILIES:
        pairs = {name: each for name in family if (each := _measured(pairs_of.get(name, ()), paired=paired))}
        tested = {name: _tested(name, each, paired=paired, seed=seed) for name, each in pairs.items()}
        raised = holm([each.p for each in tested.values()])
        for (name, test), p in zip(tested.items(), raised, strict=True):
            least_p = min(1.0, test.least_p * len(tested))
            verdict: QuantityVerdict = "passed"
            if _is_at_most(p, alpha) and worse_by(name, test.ratio) > tolerance:
                verdict = "regressed"
            elif not _is_at_most(least_p, alpha):
                verdict = "undecided"
            found.append(
                CheckedQuantity(
                    quantity=name,
                    verdict=verdict,
                    ratio=test.ratio,
                    p=p,
                    least_p=least_p,
                    repeats=min(len(side) for pair in pairs[name] for side in pair),
                    why=_why(name, pairs[name], len(tested), least_p, alpha, paired=paired) if verdict == "undecided" else None,
                )
            )
    return found


def fallen_silent(baseline: Callable[[CheckedName], Values], run: Callable[[CheckedName], Values]) -> dict[CheckedName, str]:
    """Of which quantities nothing comes out any more in any repeat of a concurrency, or prompt length, that both measured.

    Args:
        baseline: what it measured of a quantity.
        run: what it measured.

    Returns:
        Where, in a sentence.
    """
    found: dict[CheckedName, str] = {}
    for name, nothing in _NOTHING:
        of_base, of_run = baseline(name), run(name)
        shared = sorted(of_base.keys() & of_run.keys())
        if silent := [place for place in shared if any(of_base[place]) and not any(of_run[place])]:
            found[name] = f"{nothing.format(', '.join(map(str, silent)))}, where the baseline has some"
    return found


def words_of(quantity: CheckedName) -> str:
    """A checked quantity in words, for a table or a sentence."""
    return "prefill tokens/s" if quantity == "prefill_tokens_per_s" else QUANTITIES[quantity].words


def more_is_better(quantity: CheckedName) -> bool:
    """Whether a smaller value is worse, or a greater one."""
    return quantity == "prefill_tokens_per_s" or QUANTITIES[quantity].more_is_better


def worse_by(quantity: CheckedName, ratio: float) -> float:
    """By how much a ratio is to the worse: 0.1 is 10%; negative where it is to the better."""
    return 1 - ratio if more_is_better(quantity) else ratio - 1


def _measured(pairs: Sequence[Pair], *, paired: bool) -> list[Pair]:
    """What can be tested of each place: values above zero, of paired ones only where both are."""
    found: list[Pair] = []
    for base, other in pairs:
        if paired:
            both = [(before, now) for before, now in zip(base, other, strict=True) if before > 0 and now > 0]
            found.append(([before for before, _ in both], [now for _, now in both]))
        else:
            found.append(([each for each in base if each > 0], [each for each in other if each > 0]))
    return [pair for pair in found if all(pair)]


def _tested(name: CheckedName, pairs: Sequence[Pair], *, paired: bool, seed: int) -> Tested:
    strata: list[Stratum] = list(pairs)
    if paired:
        strata = [([before], [now]) for base, other in pairs for before, now in zip(base, other, strict=True)]
    return is_worse(strata, more_is_better=more_is_better(name), seed=seed)


def _why(name: CheckedName, pairs: Sequence[Pair], questions: int, least_p: float, alpha: float, *, paired: bool) -> str:
    places = len(pairs)
    of_base, of_run = (min(len(pair[side]) for pair in pairs) for side in (0, 1))
    one, many = ("prompt length", "prompt lengths") if name == PREFILL else ("concurrency", "concurrencies")
    at = f"at {places} {one if places == 1 else many}"
    limit = f"p cannot come below {least_p:.2g}, and alpha is {alpha:g}"

    def fewest(least: Callable[[int], float]) -> int | None:
        counts = range(1, _MOST_REPEATS + 1)
        return next((count for count in counts if _is_at_most(questions * least(count), alpha)), None)

    if paired:
        turns = fewest(lambda count: least_possible_p([(1, 1)] * (count * places)))
        takes = f"it takes {_repeats(turns)} by turns" if turns else None
        return f"{words_of(name)}: {_repeats(of_run)} by turns {at} cannot show a regression: {limit}; {takes or _NEVER}"
    both = fewest(lambda count: least_possible_p([(count, count)] * places))
    alone = fewest(lambda count: least_possible_p([(len(base), count) for base, _ in pairs]))
    if alone is not None and (both is None or alone <= both):
        takes = f"it takes {_repeats(alone)} against these"
    elif both is not None:
        takes = f"it takes {_repeats(both)} of both" + (
            "" if alone is None else f", or {alone} against the baseline's {of_base}"
        )
    else:
        takes = _NEVER
    told = f"{_repeats(of_run)} against the baseline's {of_base} {at}"
    return f"{words_of(name)}: {told} cannot show a regression: {limit}; {takes}"


_NEVER = "no number of repeats can at so small an alpha, because of more than 20,000 exchanges only 9,999 are drawn"


def _repeats(count: int) -> str:
    return "1 repeat" if count == 1 else f"{count} repeats"


def _is_at_most(p: float, alpha: float) -> bool:
    return p <= alpha * (1 + _ROUNDING)
