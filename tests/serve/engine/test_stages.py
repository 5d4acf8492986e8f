"""The stage clock, and that the loop names every stage of a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from driving import ScriptedRuntime, drain, request, scripted_loop, serve, settings

from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.stages import NO_STAGES, Stage, StageClock, Stages
from roundhouse.serve.engine.tokenizer import EngineTokenizer

OF_A_STEP: list[Stage] = ["schedule", "prepare", "guard", "forward", "guard", "schedule", "sampling", "detokenize"]


class Heard:
    """Notes the names of stages as they begin."""

    def __init__(self) -> None:
        self.names: list[Stage] = []

    @contextmanager
    def stage(self, name: Stage) -> Iterator[None]:
        self.names.append(name)
        yield


def staged_loop(tokenizer: EngineTokenizer, stages: Stages) -> EngineLoop:
    return EngineLoop(ScriptedRuntime(512), settings(), tokenizer, vocab=512, stages=stages)


def ticking() -> StageClock:
    """A clock by which a second passes whenever somebody looks."""
    ticks = count()
    return StageClock(lambda: float(next(ticks)))


def test_a_step_names_its_stages_in_order(tokenizer: EngineTokenizer) -> None:
    heard = Heard()
    loop = staged_loop(tokenizer, heard)
    loop.submit(request("r", [7] * 20, max_tokens=4))
    for _ in range(3):
        heard.names.clear()
        loop.step()
        assert heard.names == OF_A_STEP


def test_a_step_without_work_only_schedules(tokenizer: EngineTokenizer) -> None:
    heard = Heard()
    staged_loop(tokenizer, heard).step()
    assert heard.names == ["schedule"]


def test_rows_that_the_guard_drops_are_prepared_and_guarded_again(tokenizer: EngineTokenizer) -> None:
    heard = Heard()
    loop = staged_loop(tokenizer, heard)
    for name in ("victim", "other"):
        loop.submit(request(name, [7] * 20, max_tokens=9))
    loop.step()
    loop.pool.tracker.page_tags[loop._live["victim"].answers[0].grants[0].page] += 1000
    heard.names.clear()
    loop.step()
    assert heard.names == [OF_A_STEP[0], "prepare", "guard", *OF_A_STEP[1:]]


def test_every_moment_counts_for_the_innermost_stage() -> None:
    clock = ticking()
    with clock.stage("other"), clock.stage("forward"):  # a second before each stage within, and one after the last
        with clock.stage("linears"):
            pass
        with clock.stage("linears"):
            pass
    assert {name: seconds for name, seconds in clock.seconds.items() if seconds} == {"other": 2, "forward": 3, "linears": 2}
    assert {name: times for name, times in clock.counts.items() if times} == {"other": 1, "forward": 1, "linears": 2}


def test_time_outside_of_all_stages_counts_for_none() -> None:
    now = 0.0
    clock = StageClock(lambda: now)
    with clock.stage("guard"):
        now += 1
    now += 100
    with clock.stage("guard"):
        now += 2
    assert sum(clock.seconds.values()) == clock.seconds["guard"] == 3


def test_the_stages_of_a_step_take_no_more_than_the_step(tokenizer: EngineTokenizer) -> None:
    now = count()
    clock = StageClock(lambda: float(next(now)))
    loop = staged_loop(tokenizer, clock)
    loop.submit(request("r", [7] * 20, max_tokens=4))
    began = next(now)
    loop.step()
    wall = next(now) - began
    assert sum(clock.counts.values()) == len(OF_A_STEP)
    assert 0 < sum(clock.seconds.values()) <= wall
    clock.reset()
    with clock.stage("other"):
        loop.step()
    assert sum(clock.seconds.values()) == 2 * len(OF_A_STEP) + 1, "the rest of the step is other's"
    assert clock.seconds["other"] == len(OF_A_STEP) + 1


def test_a_stage_that_fails_has_ended() -> None:
    clock = ticking()
    with pytest.raises(ValueError, match="fault"), clock.stage("forward"), clock.stage("linears"):
        raise ValueError("fault")
    before = dict(clock.seconds)
    with clock.stage("guard"):
        pass
    assert clock.seconds == before | {"guard": 1}


def test_reset_forgets_what_was() -> None:
    clock = ticking()
    with clock.stage("guard"):
        pass
    clock.reset()
    assert sum(clock.seconds.values()) == sum(clock.counts.values()) == 0


def test_nobody_listens_by_default_and_listening_changes_nothing(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    assert loop._stage == NO_STAGES.stage
    asked = request("r", [7] * 20, max_tokens=8)
    assert serve(loop, asked) == serve(staged_loop(tokenizer, ticking()), asked)
    with pytest.raises(ValueError, match="fault"), NO_STAGES.stage("forward"):
        raise ValueError("fault")


def test_cancelling_between_steps_is_no_stage(tokenizer: EngineTokenizer) -> None:
    clock = ticking()
    loop = staged_loop(tokenizer, clock)
    loop.submit(request("r", [7] * 20, max_tokens=8))
    loop.step()
    clock.reset()
    loop.cancel("r")
    assert sum(clock.counts.values()) == 0
    drain(loop)
