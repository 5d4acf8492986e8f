from __future__ import annotations

import msgspec
import pytest
from driving import request, scripted_loop

from roundhouse.serve.engine.status import Status
from roundhouse.serve.engine.tokenizer import EngineTokenizer
from roundhouse.serve.triton.health import DOWN, STUCK, UNGUARDED, TokenWatch, silent


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def status(
    *, running: int = 1, waiting: int = 0, steps: int = 0, tokens: int = 0, guard: str = "off", checks: int = 0
) -> Status:
    return Status(
        running=running,
        waiting=waiting,
        pages_free=8,
        pages_used=0,
        pages_quarantined=0,
        tokens_in=0,
        tokens_out=tokens,
        steps=steps,
        guard=guard,
        tag_checks=checks,
        tag_mismatches=0,
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(clock: Clock) -> TokenWatch:
    """Nothing is asked to be checked."""
    return watching(clock, "off")


def watching(clock: Clock, guard: str) -> TokenWatch:
    watch = TokenWatch(clock)
    watch.begin(guard)
    return watch


def reports(watch: TokenWatch, clock: Clock, seconds: int, *, every: Status | None = None, **growth: int) -> None:
    """A report a second; ``steps`` and ``tokens`` grow by so many with each."""
    for second in range(1, seconds + 1):
        clock.now += 1
        watch.take(every or status(**{name: second * by for name, by in growth.items()}))


def test_it_is_down_until_it_is_up_and_again_when_it_is_gone(clock: Clock) -> None:
    watch = TokenWatch(clock)
    assert watch.problem() == DOWN
    watch.begin("off")
    assert watch.problem() is None
    watch.end()
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


@pytest.mark.parametrize("guard", ["off", "tags", "tags+content"])
def test_a_loop_that_stops_is_found_with_the_guard_and_without(clock: Clock, tokenizer: EngineTokenizer, guard: str) -> None:
    watch = watching(clock, guard)
    loop, _ = scripted_loop(tokenizer, guard=guard)
    loop.submit(request("r", [7] * 20, max_tokens=100))
    for _ in range(40):
        loop.step()
        clock.now += 1
        watch.take(loop.status())
    assert not watch.stuck
    assert not watch.unguarded
    reports(watch, clock, 30, every=loop.status())
    assert not watch.stuck
    reports(watch, clock, 1, every=loop.status())
    assert watch.stuck


def test_a_step_or_the_end_of_all_requests_or_a_restart_ends_it(watch: TokenWatch, clock: Clock) -> None:
    for cure in (
        lambda: watch.take(status(steps=8, tokens=8)),
        lambda: watch.take(status(running=0, steps=7, tokens=7)),
        lambda: watch.begin("off"),
    ):
        watch.take(status(steps=7, tokens=7))
        reports(watch, clock, 40, every=status(steps=7, tokens=7))
        assert watch.stuck
        cure()
        assert not watch.stuck


ON = ["tags", "tags+content"]


@pytest.mark.parametrize("guard", ON)
def test_a_step_without_its_check_is_named_until_there_is_a_fresh_engine_process(clock: Clock, guard: str) -> None:
    watch = watching(clock, guard)
    watch.take(status(guard=guard, steps=5, tokens=5, checks=5))
    assert not watch.unguarded
    assert watch.problem() is None
    watch.take(status(guard=guard, steps=9, tokens=9, checks=8))
    assert watch.unguarded
    assert watch.problem() == UNGUARDED
    for checks in (12, 100):  # that checks go on again does not make good what was missed
        watch.take(status(guard=guard, steps=checks, tokens=checks, checks=checks))
        assert watch.unguarded
    watch.end()
    assert watch.problem() == DOWN
    watch.begin(guard)
    assert not watch.unguarded
    assert watch.problem() is None
    watch.take(status(guard=guard, steps=1, tokens=1, checks=1))  # it counts from 0
    assert not watch.unguarded


@pytest.mark.parametrize("guard", ON)
def test_checks_that_were_left_over_do_not_hide_a_step_without_one(clock: Clock, guard: str) -> None:
    watch = watching(clock, guard)
    watch.take(status(guard=guard, steps=1, tokens=1, checks=4))  # three rows were dropped, one after the other
    assert not watch.unguarded
    watch.take(status(guard=guard, steps=3, tokens=3, checks=5))
    assert watch.unguarded


@pytest.mark.parametrize("guard", ON)
def test_the_first_report_counts_too(clock: Clock, guard: str) -> None:
    watch = watching(clock, guard)
    watch.take(status(guard=guard, steps=1, checks=0))
    assert watch.unguarded


@pytest.mark.parametrize("asked", ON)
@pytest.mark.parametrize("guard", ["off", *ON])
def test_what_was_asked_for_counts_and_not_what_the_loop_takes_itself_for(clock: Clock, asked: str, guard: str) -> None:
    watch = watching(clock, asked)
    watch.take(status(guard=guard, steps=0))
    assert watch.problem() is None, "nothing ran unchecked yet"
    watch.take(status(guard=guard, steps=1, checks=1))
    assert watch.unguarded == (guard != asked)
    watch.take(status(guard=asked, steps=2, checks=2))
    assert watch.unguarded == (guard != asked)


@pytest.mark.parametrize("asked", ON)
def test_a_loop_that_was_made_without_the_check_is_found(clock: Clock, tokenizer: EngineTokenizer, asked: str) -> None:
    watch = watching(clock, asked)
    loop, _ = scripted_loop(tokenizer, guard="off")
    watch.take(loop.status())
    assert watch.problem() is None
    loop.submit(request("r", [7] * 20, max_tokens=100))
    loop.step()
    watch.take(loop.status())
    assert watch.problem() == UNGUARDED


def test_who_reports_must_say_what_it_checks() -> None:
    fields = msgspec.structs.asdict(status())
    with pytest.raises(msgspec.ValidationError, match="guard"):
        msgspec.convert({name: value for name, value in fields.items() if name != "guard"} | {"type": "status"}, Status)


def test_with_the_guard_off_no_check_is_missed(watch: TokenWatch, clock: Clock) -> None:
    reports(watch, clock, 20, steps=1, tokens=1)
    assert not watch.unguarded
    assert watch.problem() is None


@pytest.mark.parametrize("guard", ON)
def test_a_loop_whose_check_falls_silent_is_found(
    clock: Clock, tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch, guard: str
) -> None:
    watch = watching(clock, guard)
    loop, _ = scripted_loop(tokenizer, guard=guard)
    loop.submit(request("r", [7] * 20, max_tokens=100))
    loop.step()
    loop.pool.tracker.page_tags[0] += 1000  # a row that is dropped: two checks in one step
    loop.submit(request("s", [9] * 20, max_tokens=100))
    loop.step()
    watch.take(loop.status())
    assert not watch.unguarded
    monkeypatch.setattr(loop._integrity, "bad_rows", lambda prepared: [])
    loop.step()
    watch.take(loop.status())
    assert watch.problem() == UNGUARDED
