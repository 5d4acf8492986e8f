"""A run against its baseline: what fails, what passes, and what nobody can tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from benchmark_runs import made_benchmark, made_prefill

from roundhouse.errors import UsageError
from roundhouse.serve.benchmark.checking import check
from roundhouse.serve.benchmark.judging import CHECKED
from roundhouse.serve.benchmark.points import PrefillPoint
from roundhouse.serve.benchmark.records import Benchmark
from roundhouse.serve.benchmark.workload import Workload

BASE = {1: [100.0, 101.0, 99.0], 8: [400.0, 404.0, 396.0], 16: [600.0, 590.0, 610.0]}


def scaled(factor: float, speeds: dict[int, list[float]] | None = None, **header: Any) -> Benchmark:
    given: dict[int, Sequence[float]] = {level: [speed * factor for speed in each] for level, each in (speeds or BASE).items()}
    return made_benchmark(given, id_="b" * 12, **header)


def with_failures(run: Benchmark, failed: int) -> Benchmark:
    first, *rest = run.points
    return run.model_copy(update={"points": (first.model_copy(update={"failed": {"timeout": failed}}), *rest)})


def test_an_equal_run_passes() -> None:
    checked = check(scaled(1.0), made_benchmark(BASE))
    assert (checked.verdict, checked.reasons, checked.concurrencies) == ("passed", (), (1, 8, 16))
    assert all(each.ratio == pytest.approx(1) for each in checked.quantities)


def test_a_clear_drop_fails_and_says_of_what() -> None:
    checked = check(scaled(0.9), made_benchmark(BASE))
    assert checked.verdict == "regressed"
    assert checked.reasons[0].startswith("output tokens/s is down by 10.0%")
    assert any(reason.startswith("TTFT p50 is up by 11.1%") for reason in checked.reasons)
    assert [each.p for each in checked.quantities] == pytest.approx([3 / 20**3] * 3)


def test_a_faster_run_passes() -> None:
    assert check(scaled(1.3), made_benchmark(BASE)).verdict == "passed"


def test_a_drop_within_the_tolerance_passes_however_sure_it_is() -> None:
    steady = {level: [speed, speed, speed] for level, speed in ((1, 100.0), (8, 400.0), (16, 600.0))}
    base = made_benchmark(steady)
    assert check(scaled(0.985, steady), base).verdict == "passed"
    assert check(scaled(0.985, steady), base, tolerance=0.01).verdict == "regressed"


def test_a_drop_that_the_repeats_do_not_support_passes() -> None:
    wild = {1: [100.0, 60.0, 140.0], 8: [400.0, 250.0, 600.0], 16: [600.0, 300.0, 900.0]}
    checked = check(scaled(0.9, wild), made_benchmark(wild))
    assert checked.verdict == "passed"
    assert checked.quantities[0].ratio == pytest.approx(0.9)


def test_too_few_repeats_never_pass() -> None:
    few = {1: [100.0, 100.0], 8: [400.0, 400.0]}
    checked = check(scaled(1.0, few), made_benchmark(few))
    assert checked.verdict == "undecided"
    assert "2 repeats against the baseline's 2 at 2 concurrencies" in checked.reasons[0]
    assert "p cannot come below 0.083" in checked.reasons[0]
    assert checked.reasons[0].endswith("it takes 3 repeats against these")
    one_level = {1: [100.0, 100.0, 100.0]}
    assert check(scaled(0.5, one_level), made_benchmark(one_level)).verdict == "undecided"
    assert check(scaled(0.5, one_level), made_benchmark(one_level), alpha=0.2).verdict == "regressed"


def test_by_turns_what_disturbs_both_hides_nothing() -> None:
    speeds = {1: [100.0, 40.0, 70.0, 90.0, 20.0, 55.0, 81.0]}
    apart = check(scaled(0.95, speeds), made_benchmark(speeds))
    turns = check(scaled(0.95, speeds, session="s"), made_benchmark(speeds, session="s"))
    assert (apart.verdict, turns.verdict) == ("passed", "regressed")
    assert turns.quantities[0].p == pytest.approx(3 / 2**7)


def test_failures_that_the_baseline_did_not_have_fail_the_check() -> None:
    checked = check(with_failures(scaled(1.0), 1), made_benchmark(BASE))
    assert checked.verdict == "failures"
    assert checked.reasons == ("1 of 73 requests failed, in the baseline 0 of 72",)
    few = {1: [100.0]}
    assert check(with_failures(scaled(1.0, few), 1), made_benchmark(few)).verdict == "failures"


def test_failures_that_the_baseline_had_too_are_tested() -> None:
    base = with_failures(made_benchmark(BASE), 3)
    assert check(with_failures(scaled(1.0), 4), base).verdict == "passed"
    assert check(with_failures(scaled(1.0), 30), base).verdict == "failures"


def prefills(*speeds: float, lengths: Sequence[int] = (512, 2048)) -> list[PrefillPoint]:
    return [made_prefill(length, repeat, speed) for repeat, speed in enumerate(speeds) for length in lengths]


def test_prefill_is_checked_where_both_have_measured_it() -> None:
    base = made_benchmark(BASE, prefill=prefills(1000, 1010, 990))
    slower = check(scaled(1.0, prefill=prefills(900, 909, 891)), base)
    assert slower.verdict == "regressed"
    assert slower.reasons == ("prefill tokens/s is down by 10.0% (tolerated: 2.0%; p = 0.0025)",)
    assert check(scaled(1.0, prefill=prefills(1000, 1010, 990)), base).verdict == "passed"
    without = check(scaled(1.0), base)
    assert {each.quantity for each in without.quantities} == set(CHECKED)
    assert any("so not checked: prefill of 512, 2048" in warning for warning in without.warnings)


def test_what_is_decided_is_not_drowned_by_what_is_not() -> None:
    one = made_benchmark(BASE, prefill=prefills(1000, 1010, 990, lengths=(512,)))
    assert check(scaled(1.0, prefill=prefills(1000, 1010, 990, lengths=(512,))), one).verdict == "passed"
    slower = check(scaled(1.0, prefill=prefills(900, 909, 891, lengths=(512,))), one)
    assert (slower.verdict, slower.quantities[-1].p) == ("regressed", pytest.approx(0.05))
    two = prefills(1000, 1010, lengths=(512,))
    in_part = check(scaled(1.0, prefill=two), one)
    assert in_part.verdict == "passed in part"
    assert [each.verdict for each in in_part.quantities] == ["passed", "passed", "passed", "undecided"]
    (why,) = in_part.reasons
    assert why.startswith("prefill tokens/s: 2 repeats against the baseline's 3 at 1 prompt length cannot show a regression")
    assert why.endswith("p cannot come below 0.1, and alpha is 0.05; it takes 3 repeats against these")
    worse = check(scaled(0.9, prefill=two), one)
    assert worse.verdict == "regressed"
    assert "output tokens/s is down" in worse.reasons[0]
    assert worse.reasons[-1] == why
    assert check(with_failures(scaled(1.0, prefill=two), 1), one).verdict == "failures"


def test_a_prompt_that_fails_is_a_failure() -> None:
    base = made_benchmark(BASE, prefill=prefills(1000, 1010, 990))
    first, *rest = prefills(1000, 1010, 990)
    lost = first.model_copy(update={"failed": {"timeout": 4}, "requests": 0, "ttft": None, "measured_tokens": None})
    checked = check(scaled(1.0, prefill=[lost, *rest]), base)
    assert checked.verdict == "failures"
    assert "4 of 96 requests failed, in the baseline 0 of 96" in checked.reasons[0]


def test_what_cannot_be_compared_is_refused() -> None:
    base = made_benchmark(BASE)
    with pytest.raises(UsageError, match="asked different things"):
        check(scaled(1.0, workload=Workload(output_tokens=8)), base)
    with pytest.raises(UsageError, match="share no concurrency") as caught:
        check(scaled(1.0, {2: [1.0] * 3}), base)
    assert "--concurrency 1,8,16" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="is interrupted"):
        check(scaled(1.0).model_copy(update={"state": "interrupted"}), base)


def test_what_is_not_checked_is_said() -> None:
    less = {level: each for level, each in BASE.items() if level != 16}
    run = scaled(1.0, less)
    run = run.model_copy(update={"points": tuple(point.model_copy(update={"ttft": None}) for point in run.points)})
    warnings = "\n".join(check(run, made_benchmark(BASE)).warnings)
    assert "so not checked: concurrency 16" in warnings
    assert "so not checked: TTFT p50" in warnings


def silenced(run: Benchmark, concurrency: int) -> Benchmark:
    """Nothing completes there, and nothing fails."""
    none = {"completed": 0, "input_tokens": 0, "output_tokens": 0, "ttft": None, "inter_token": None, "end_to_end": None}
    points = [point.model_copy(update=none) if point.concurrency == concurrency else point for point in run.points]
    return run.model_copy(update={"points": tuple(points)})


@pytest.mark.parametrize("session", [None, "s"])
def test_where_nothing_comes_out_any_more_it_has_regressed(session: str | None) -> None:
    base = made_benchmark(BASE, session=session)
    checked = check(silenced(scaled(1.0, session=session), 8), base)
    assert checked.verdict == "regressed"
    assert checked.reasons == ("no tokens came out at 8 at once, where the baseline has some",)
    only = {8: BASE[8]}
    assert check(silenced(scaled(1.0, only), 8), made_benchmark(only)).verdict == "regressed"
    assert check(silenced(scaled(1.0), 8), silenced(base.model_copy(), 8)).verdict == "passed", "neither did it in the baseline"
    one = silenced(scaled(1.0), 8)
    kept = one.model_copy(update={"points": tuple(scaled(1.0).points[:4] + one.points[4:])})
    assert kept.points[3].concurrency == 8
    assert "no tokens" not in " ".join(check(kept, base).reasons), "one repeat answered"


def test_where_no_prompt_is_answered_any_more_prefill_has_regressed() -> None:
    silent = [each.model_copy(update={"requests": 0, "ttft": None}) for each in prefills(1, 1, 1, lengths=(512,))]
    base = made_benchmark(BASE, prefill=prefills(1000, 1010, 990))
    checked = check(scaled(1.0, prefill=[*silent, *prefills(1000, 1010, 990, lengths=(2048,))]), base)
    assert checked.verdict == "regressed"
    assert checked.reasons[0] == "no prompt of 512 tokens was answered, where the baseline has some"
