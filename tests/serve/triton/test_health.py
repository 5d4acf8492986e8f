from __future__ import annotations

import pytest
from driving import request, scripted_loop

from roundhouse.serve.engine.status import Status
from roundhouse.serve.engine.tokenizer import EngineTokenizer
from roundhouse.serve.triton.health import DOWN, STUCK, TokenWatch, silent


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def status(*, running: int = 1, waiting: int = 0, steps: int = 0, tokens: int = 0) -> Status:
    return Status(
        running=running,
        waiting=waiting,
        pages_free=8,
        pages_used=0,
        pages_quarantined=0,
        tokens_in=0,
        tokens_out=tokens,
        steps=steps,
        tag_checks=0,
        tag_mismatches=0,
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(clock: Clock) -> TokenWatch:
    watch = TokenWatch(clock)
    watch.set_up(True)
    return watch


def reports(watch: TokenWatch, clock: Clock, seconds: int, *, every: Status | None = None, **growth: int) -> None:
    """A report a second; ``steps`` and ``tokens`` grow by so many with each."""
    for second in range(1, seconds + 1):
        clock.now += 1
        watch.take(every or status(**{name: second * by for name, by in growth.items()}))


def test_it_is_down_until_it_is_up_and_again_when_it_is_gone(clock: Clock) -> None:
    watch = TokenWatch(clock)
    assert watch.problem() == DOWN
    watch.set_up(True)
    assert watch.problem() is None
    watch.set_up(False)
    assert watch.problem() == DOWN


def test_a_process_that_reports_no_more_is_named(watch: TokenWatch, clock: Clock) -> None:
    clock.now += 30
    assert watch.problem() is None
    clock.now += 1
    assert watch.problem() == silent(31) == "the engine process has not reported for 31 s"
    watch.take(status(running=0))
    assert watch.problem() is None


def test_an_idle_engine_is_well_however_long(watch: TokenWatch, clock: Clock) -> None:
    reports(watch, clock, 1000, every=status(running=0, steps=5, tokens=5))
    assert watch.problem() is None


def test_requests_that_wait_while_no_step_is_taken_are_stuck(watch: TokenWatch, clock: Clock) -> None:
    watch.take(status(steps=7, tokens=7))
    reports(watch, clock, 30, every=status(running=0, waiting=3, steps=7, tokens=7))
    assert not watch.stuck
    reports(watch, clock, 1, every=status(running=0, waiting=3, steps=7, tokens=7))
    assert watch.stuck
    assert watch.problem() == STUCK


def test_requests_that_wait_from_the_start_are_stuck_too(watch: TokenWatch, clock: Clock) -> None:
    reports(watch, clock, 31, every=status(running=0, waiting=1))
    assert watch.problem() == STUCK


def test_steps_that_give_tokens_keep_it_well(watch: TokenWatch, clock: Clock) -> None:
    reports(watch, clock, 1000, steps=1, tokens=1)
    assert not watch.stuck


def test_steps_without_any_token_are_believed_for_some_minutes_only(watch: TokenWatch, clock: Clock) -> None:
    reports(watch, clock, 300, steps=1)
    assert not watch.stuck
    reports(watch, clock, 1, every=status(steps=301))
    assert watch.stuck


@pytest.mark.parametrize("guard", ["off", "tags"])
def test_a_loop_that_stops_is_found_with_the_guard_and_without(
    watch: TokenWatch, clock: Clock, tokenizer: EngineTokenizer, guard: str
) -> None:
    loop, _ = scripted_loop(tokenizer, guard=guard)
    loop.submit(request("r", [7] * 20, max_tokens=100))
    for _ in range(40):
        loop.step()
        clock.now += 1
        watch.take(loop.status())
    assert not watch.stuck
    reports(watch, clock, 30, every=loop.status())
    assert not watch.stuck
    reports(watch, clock, 1, every=loop.status())
    assert watch.stuck


def test_a_step_or_the_end_of_all_requests_or_a_restart_ends_it(watch: TokenWatch, clock: Clock) -> None:
    for cure in (
        lambda: watch.take(status(steps=8, tokens=8)),
        lambda: watch.take(status(running=0, steps=7, tokens=7)),
        lambda: watch.set_up(True),
    ):
        watch.take(status(steps=7, tokens=7))
        reports(watch, clock, 40, every=status(steps=7, tokens=7))
        assert watch.stuck
        cure()
        assert not watch.stuck
