"""The rule for one quantity after the other: two families, and what it takes where nobody can tell."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.serve.benchmark.judging import CHECKED, PREFILL, CheckedName, CheckedQuantity, Pair, judge

STEADY, SLOWER = (100.0, 101.0, 102.0), (90.0, 91.0, 92.0)


def judged(pairs_of: dict[CheckedName, list[Pair]], **more: float) -> dict[CheckedName, CheckedQuantity]:
    found = judge(pairs_of, **{"alpha": 0.05, "tolerance": 0.02, **more})  # type: ignore[arg-type]
    return {each.quantity: each for each in found}


def test_prefill_at_one_length_is_decided_by_three_repeats_whatever_else_is_asked() -> None:
    load: list[Pair] = [(STEADY, STEADY), (STEADY, STEADY)]
    found = judged({**dict.fromkeys(CHECKED, load), PREFILL: [(STEADY, SLOWER)]})
    assert (found[PREFILL].verdict, found[PREFILL].p) == ("regressed", pytest.approx(0.05))
    assert {found[name].verdict for name in CHECKED} == {"passed"}
    assert judged({PREFILL: [(STEADY, STEADY)]})[PREFILL].verdict == "passed"


def test_questions_of_load_are_raised_for_each_other_and_not_for_prefill() -> None:
    places: list[Pair] = [(STEADY, SLOWER), (STEADY, SLOWER)]
    found = judged({"output_tokens_per_s": places, "ttft_p50": places, PREFILL: places})
    assert found["output_tokens_per_s"].p == pytest.approx(2 / 400)
    assert found[PREFILL].p == pytest.approx(1 / 400)


def test_what_cannot_be_decided_says_what_it_takes() -> None:
    one_level: dict[CheckedName, list[Pair]] = {name: [(STEADY, SLOWER)] for name in CHECKED}
    found = judged(one_level)
    assert found["output_tokens_per_s"].verdict == "undecided"
    assert found["output_tokens_per_s"].why == (
        "output tokens/s: 3 repeats against the baseline's 3 at 1 concurrency cannot show a regression: p cannot come below "
        "0.15, and alpha is 0.05; it takes 4 repeats of both, or 6 against the baseline's 3"
    )
    more = (*STEADY, *STEADY)
    (alone,) = judged({PREFILL: [(more, SLOWER[:1])]}).values()
    assert alone.why is not None
    assert alone.why.endswith("it takes 2 repeats against these")
    (turns,) = judge({PREFILL: [(STEADY, SLOWER)]}, alpha=0.05, tolerance=0.02, paired=True)
    assert turns.why == (
        "prefill tokens/s: 3 repeats by turns at 1 prompt length cannot show a regression: p cannot come below 0.12, and alpha "
        "is 0.05; it takes 5 repeats by turns"
    )
    never = judged(one_level, alpha=0.00001)
    assert str(never["ttft_p50"].why).endswith("because of more than 20,000 exchanges only 9,999 are drawn")


@given(
    base=st.integers(1, 6),
    run=st.integers(1, 6),
    places=st.integers(1, 3),
    alpha=st.sampled_from([0.01, 0.05, 0.1, 0.3]),
    quantities=st.integers(1, 3),
)
def test_what_it_takes_is_enough_and_one_less_is_not(base: int, run: int, places: int, alpha: float, quantities: int) -> None:
    def verdict(of_base: int, of_run: int) -> CheckedQuantity:
        pairs: list[Pair] = [([100.0] * of_base, [100.0] * of_run)] * places
        return judged(dict.fromkeys(CHECKED[:quantities], pairs), alpha=alpha)[CHECKED[0]]

    why = verdict(base, run).why
    if why is None:
        return
    if both := re.search(r"it takes (\d+) repeats? of both", why):
        count = int(both[1])
        assert verdict(count, count).verdict == "passed"
        assert verdict(count - 1, count - 1).verdict == "undecided" if count > 1 else True
    if alone := re.search(r"(?:takes|or) (\d+) (?:repeats? )?against", why):
        count = int(alone[1])
        assert verdict(base, count).verdict == "passed"
        assert verdict(base, count - 1).verdict == "undecided" if count > 1 else True


def test_repeats_in_which_nothing_came_out_count_for_nothing() -> None:
    (found,) = judged({PREFILL: [((100.0, 0.0, 101.0), SLOWER), ((0.0,), (5.0,))]}).values()
    assert (found.repeats, found.verdict) == (2, "undecided")
    assert judged({PREFILL: [((0.0,), (5.0,))]}) == {}
