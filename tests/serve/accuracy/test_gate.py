"""The gate fails on what was shown, passes on what was measured, and says why it does neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.serve.accuracy.gate import judge
from roundhouse.serve.accuracy.records import Difference, TaskScore, Unmeasured


def score(
    task: str = "rh-arithmetic",
    *,
    value: float | None = 0.0,
    low: float = -0.1,
    high: float = 0.1,
    is_share: bool = True,
    uncompared: str | None = None,
):
    difference = None if value is None else Difference(base=0.5, value=value, low=low, high=high)
    return TaskScore(
        task=task,
        suite="roundhouse",
        metric="accuracy",
        higher_is_better=True,
        is_share=is_share,
        value=0.5,
        stderr=0.05,
        items=100,
        difference=difference,
        uncompared=uncompared,
        seconds=1.0,
    )


def unmeasured(task: str, *, is_share: bool) -> Unmeasured:
    return Unmeasured(task=task, reason="no data", is_share=is_share)


@pytest.mark.parametrize(
    ("value", "low", "high", "state"),
    [
        (-0.05, -0.08, -0.02, "failed"),
        (-0.05, -0.12, 0.02, "passed"),  # down, and it may be chance
        (-0.007, -0.0079, -0.006, "passed"),  # surely down, by less than is allowed
        (-0.009, -0.0100, -0.0001, "failed"),
        (0.05, 0.01, 0.09, "passed"),
    ],
)
def test_a_task_fails_when_it_is_down_by_more_than_allowed_beyond_noise(value, low, high, state) -> None:
    assert judge([score(value=value, low=low, high=high)], [], limit_points=0.8).state == state


def test_the_reason_names_the_task_and_the_interval() -> None:
    (reason,) = judge([score(value=-0.05, low=-0.08, high=-0.02)], [], limit_points=0.8).reasons
    assert reason == "rh-arithmetic is 5.0 points down, surely between 2.0 and 8.0."


def test_without_a_base_nothing_was_measured() -> None:
    found = judge([score(value=None)], [], limit_points=0.8)
    assert (found.state, found.reasons) == ("not measured", ("No share of right answers was compared with a base.",))


def test_perplexity_alone_is_no_share() -> None:
    assert (
        judge([score("rh-perplexity", value=3.0, low=2, high=4, is_share=False)], [], limit_points=0.8).state == "not measured"
    )


def test_a_share_that_came_to_nothing_keeps_the_gate_from_passing() -> None:
    found = judge([score()], [unmeasured("gsm8k", is_share=True)], limit_points=0.8)
    assert found.state == "not measured"
    assert found.reasons == ("gsm8k was not measured: no data",)


def test_what_is_no_share_does_not() -> None:
    assert judge([score()], [unmeasured("rh-perplexity", is_share=False)], limit_points=0.8).state == "passed"


def test_a_share_that_was_not_compared_keeps_the_gate_from_passing() -> None:
    found = judge([score(), score("rh-needle", value=None)], [], limit_points=0.8)
    assert found.reasons == ("rh-needle could not be compared: its base was not measured.",)


def test_why_a_share_was_not_compared_is_told() -> None:
    partly = score("gsm8k", value=None, uncompared="the base answered only 5 of these 10 questions")
    for others in ([], [score()]):
        found = judge([partly, *others], [], limit_points=0.8)
        assert found.state == "not measured"
        assert found.reasons[0] == "gsm8k could not be compared: the base answered only 5 of these 10 questions."
    assert judge([partly, score(value=-0.5, low=-0.6, high=-0.4)], [], limit_points=0.8).state == "failed"


def test_what_did_not_end_has_not_passed_but_may_have_failed() -> None:
    assert judge([score()], [], limit_points=0.8, ended=False).state == "not measured"
    assert judge([score(value=-0.5, low=-0.6, high=-0.4)], [], limit_points=0.8, ended=False).state == "failed"


@given(st.floats(-1, 1), st.floats(0, 0.5), st.floats(0, 20))
def test_a_task_that_is_not_down_never_fails(value: float, half: float, limit: float) -> None:
    found = judge([score(value=value, low=value - half, high=value + half)], [], limit_points=limit)
    assert found.state == ("failed" if 100 * value < -limit and value + half < 0 else "passed")
