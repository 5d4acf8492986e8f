"""Episodes with the page check off and on take turns, on loops without a model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from driving import MAX_SEQ_LEN, ScriptedRuntime, settings

sys.path.insert(0, str(Path(__file__).parent))
from guard_episodes import interleaved, play, rotated

from roundhouse.errors import ServeError
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.tokenizer import EngineTokenizer, load_tokenizer

LEVELS = ("off", "tags", "tags+content")


@pytest.fixture(scope="module")
def tokenizer(tiny_model) -> EngineTokenizer:
    return load_tokenizer(tiny_model("llama"))


def prompts(number: int) -> list[list[int]]:
    return [[7 + number, row] * 5 for row in range(3)]


def ticking() -> Callable[[], float]:
    """A second passes with every look at it."""
    ticks = count()
    return lambda: float(next(ticks))


def test_every_level_is_at_every_place() -> None:
    orders = [rotated("ABC", number) for number in range(4)]
    assert orders == [["A", "B", "C"], ["B", "C", "A"], ["C", "A", "B"], ["A", "B", "C"]]


def test_levels_take_turns_on_one_runtime(tokenizer: EngineTokenizer) -> None:
    runtime = ScriptedRuntime(512)
    loops = {
        level: EngineLoop(runtime, settings(guard=level, prefix_reuse=True), tokenizer, vocab=512)  # type: ignore[arg-type]
        for level in LEVELS
    }
    asked: list[int] = []
    seen = []
    for each in interleaved(loops, lambda number: asked.append(number) or prompts(number), 4, 3):
        assert all(loop.pool.free == loop.pool.pages for loop in loops.values()), "nobody holds a page between episodes"
        seen.append((each.cell.repeat, each.cell.system))
        assert (each.cell.concurrency, each.cell.run.output_tokens, len(each.step_ms)) == (3, 12, 3)
    assert seen == [(number, level) for number in range(3) for level in rotated(LEVELS, number)]
    assert asked == [0, 1, 2], "all levels of a round have the same prompts"
    first_steps = [batch.token_ids.tolist() for batch in runtime.forwards[::4]]
    assert first_steps == [[token for ids in prompts(number) for token in ids] for number in range(3) for _ in LEVELS]
    status = {level: loop.status() for level, loop in loops.items()}
    assert [status[level].tag_checks for level in LEVELS] == [0, 12, 12]
    assert [status[level].content_checks > 0 for level in LEVELS] == [False, False, True]


def test_only_steps_in_which_all_decode_are_latencies(tokenizer: EngineTokenizer) -> None:
    loop = EngineLoop(ScriptedRuntime(512), settings(max_num_tokens=16), tokenizer, vocab=512)
    run, step_ms = play(loop, prompts(0), 6, clock=ticking())
    steps = loop.status().steps
    assert run.seconds == steps, "from the first request's start to the last one's end"
    assert run.output_tokens == 18
    assert 0 < len(step_ms) < 5, "prompts of 30 tokens take two steps of 16, and the first to begin is the first to end"
    assert set(step_ms) == {1000.0}


def test_what_is_no_measurement_is_refused(tokenizer: EngineTokenizer) -> None:
    loop = EngineLoop(ScriptedRuntime(512), settings(), tokenizer, vocab=512)
    with pytest.raises(ServeError, match="no step in which all requests decode"):
        play(loop, prompts(0), 1)
    with pytest.raises(ServeError, match=f"{3 * (MAX_SEQ_LEN - 10)} tokens came out instead of 600"):
        play(loop, prompts(0), 200)
