"""The page check in a step, taken apart: every part of it is counted, and for what it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from driving import PAGE_TOKENS, ScriptedRuntime, settings

sys.path.insert(0, str(Path(__file__).parent))
from guard_share import GuardClock, Share, clocked_loop, share

from roundhouse.build.recipe import Guard
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.tokenizer import EngineTokenizer, load_tokenizer

PROMPTS = [[7 + row, 3] * 5 for row in range(3)]
STEPS = 2 * PAGE_TOKENS


@pytest.fixture(scope="module")
def tokenizer(tiny_model) -> EngineTokenizer:
    return load_tokenizer(tiny_model("llama"))


@pytest.fixture
def made(tokenizer: EngineTokenizer) -> Callable[[Guard], tuple[EngineLoop, GuardClock]]:
    def make(level: Guard) -> tuple[EngineLoop, GuardClock]:
        ticks = count()
        clock = GuardClock(lambda: float(next(ticks)))
        runtime = ScriptedRuntime(512)
        return clocked_loop(runtime, settings(guard=level), tokenizer, vocab=512, clock=clock), clock

    return make


def test_each_part_is_counted_once_and_they_add_up(made) -> None:
    loop, clock = made("tags")
    told = share("tags", loop, clock, PROMPTS, steps=STEPS)
    assert (told.level, told.profile.steps, told.profile.concurrency) == ("tags", STEPS, 3)
    # Each row crosses into two more pages: a tag is drawn and the grant is noted, in a tick each.
    assert told.tracker_ms == pytest.approx(3 * 2 * 2 * 1000 / STEPS)
    assert told.sealing_ms == 1000.0
    # A guard stage around the comparison, and what is left of the one around sealing.
    assert told.comparing_ms == 3 * 1000.0
    assert told.of_step == pytest.approx((told.comparing_ms + told.sealing_ms + told.tracker_ms) / told.profile.step_ms)
    assert told.profile.ms["schedule"] > 0
    assert not loop.has_work


def test_pages_given_back_after_the_steps_are_not_part_of_them(made) -> None:
    loop, clock = made("tags")
    told = share("tags", loop, clock, PROMPTS, steps=1)
    assert told.tracker_ms == 0, "no page was granted in this step"
    assert clock.counts["tracker"] > 0, "though pages were given back after it"


@pytest.mark.parametrize("level", ["tags", "tags+content"])
def test_the_check_works_as_it_does_unclocked(made, level: Guard) -> None:
    loop, clock = made(level)
    share(level, loop, clock, PROMPTS, steps=STEPS)
    loop.check_integrity()
    status = loop.status()
    assert status.guard == level
    assert status.tag_checks == status.steps
    assert status.tag_mismatches == status.content_mismatches == 0
    assert (status.content_checks > 0) is (level == "tags+content")
    assert loop._integrity.history.last_holders(0), "grants are still noted"
    assert not loop.pool.tracker.page_tags.any(), "tags are still cleared"


def test_a_reset_clears_the_parts() -> None:
    ticks = count()
    clock = GuardClock(lambda: float(next(ticks)))
    clock.enter("tracker")  # type: ignore[arg-type]
    clock.leave()
    assert clock.seconds["tracker"] == 1.0  # type: ignore[index]
    clock.reset()
    assert set(clock.seconds.values()) == {0.0}
    assert {"sealing", "tracker", "guard"} <= set(clock.seconds)


def test_a_share_is_of_the_whole_step() -> None:
    from step_profile import StepProfile

    ms = {"guard": 0.3, "sealing": 0.1, "tracker": 0.1, "forward": 99.5}
    assert Share("tags", StepProfile(8, 4, ms, 0.0)).of_step == pytest.approx(0.005)  # type: ignore[arg-type]
