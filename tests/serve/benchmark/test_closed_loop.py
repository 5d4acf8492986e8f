"""So many requests at once, each timed on one clock."""

from __future__ import annotations

from itertools import count
from typing import Any

from driving import scripted_loop

from roundhouse.serve.benchmark.closed_loop import ClosedLoop
from roundhouse.serve.benchmark.measuring import MeasuredRequest
from roundhouse.serve.benchmark.prompts import PlannedRequest
from roundhouse.serve.engine.tokenizer import EngineTokenizer


def planned(number: int, output_tokens: int = 4, **more: Any) -> PlannedRequest:
    return PlannedRequest([3 + number] * 10, output_tokens, **more)


def run(point: ClosedLoop, loop: Any, most: int = 200) -> tuple[list[MeasuredRequest], list[int]]:
    """Step to the end; returns what was measured, and how many ran after each step."""
    running = []
    for _ in range(most):
        if point.done:
            return point.measured, running
        point.step()
        running.append(loop.status().running)
    raise AssertionError("it does not end")


def ticking() -> Any:
    ticks = count()
    return lambda: float(next(ticks))


def test_so_many_run_at_once_until_all_were_sent(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    point = ClosedLoop(loop, [planned(number) for number in range(7)], concurrency=3, timeout_s=600)
    measured, running = run(point, loop)
    assert max(running) == 3
    assert loop.status().steps == 4 * 3, "the next is sent as soon as one ends: no step runs with fewer than it could"
    assert [each.outcome for each in measured] == ["completed"] * 7
    assert {(each.input_tokens, each.output_tokens) for each in measured} == {(10, 4)}


def test_times_are_in_order_on_one_clock(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    point = ClosedLoop(loop, [planned(0), planned(1, 1)], concurrency=1, timeout_s=600, clock=ticking())
    (first, second), _ = run(point, loop)
    assert first.first_token is not None
    assert first.began < first.first_token < first.ended < second.began
    assert second.first_token == second.ended


def test_what_fails_is_told_by_its_kind(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    point = ClosedLoop(loop, [PlannedRequest([3] * 500, 4), planned(1)], concurrency=2, timeout_s=600)
    measured, _ = run(point, loop)
    assert {(each.outcome, each.error) for each in measured} == {("failed", "invalid_request"), ("completed", None)}


def test_a_request_that_takes_too_long_fails(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, clock=ticking())
    point = ClosedLoop(loop, [planned(0, 50)], concurrency=1, timeout_s=5)
    (measured,), _ = run(point, loop)
    assert (measured.outcome, measured.error) == ("failed", "deadline")
    assert measured.first_token is not None


def test_what_is_to_be_cancelled_is_and_what_ends_before_is_not(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    requests = [planned(0, 60, cancel_after_s=5.0), planned(1, 1, cancel_after_s=1000.0), planned(2, 3)]
    point = ClosedLoop(loop, requests, concurrency=3, timeout_s=600, clock=ticking())
    measured, _ = run(point, loop)
    assert sorted(each.outcome for each in measured) == ["cancelled", "completed", "completed"]
    (cancelled,) = (each for each in measured if each.outcome == "cancelled")
    assert 0 < cancelled.output_tokens < 60
    assert loop.status().pages_used == 0


def test_stopping_gives_everything_back(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    point = ClosedLoop(loop, [planned(number, 60) for number in range(20)], concurrency=4, timeout_s=600)
    for _ in range(3):
        point.step()
    assert loop.status().running == 4
    point.cancel_all()
    assert point.done
    assert not loop.has_work
    assert loop.status().pages_used == 0
    loop.check_integrity()
