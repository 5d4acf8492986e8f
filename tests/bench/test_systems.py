"""The bench's systems, on loops without a model and on a tiny one: they give what was asked for, or say why not."""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

import pytest
from driving import MAX_SEQ_LEN, ScriptedRuntime, scripted_loop, settings

sys.path.insert(0, str(Path(__file__).parent))
from step_profile import profile
from systems import InProcess, Transformers

from roundhouse.build.engine import Engine
from roundhouse.errors import ServeError
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.stages import StageClock
from roundhouse.serve.engine.tokenizer import EngineTokenizer, load_tokenizer

PROMPTS = [[7 + number] * 20 for number in range(3)]


@pytest.fixture(scope="module")
def tokenizer(tiny_model) -> EngineTokenizer:
    return load_tokenizer(tiny_model("llama"))


def test_in_process_gives_every_token_and_knows_how_fast_it_decoded(tokenizer: EngineTokenizer) -> None:
    loop, runtime = scripted_loop(tokenizer)
    run = InProcess(loop).run(PROMPTS, 6)
    assert run.output_tokens == 18
    assert run.seconds > 0
    assert run.decode_tokens_per_s is not None
    assert len(runtime.forwards) == 6
    assert not loop.has_work


def test_an_answer_that_was_cut_is_no_measurement(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    with pytest.raises(ServeError, match=f"{3 * (MAX_SEQ_LEN - 20)} tokens came out instead of 600"):
        InProcess(loop).run(PROMPTS, 200)
    with pytest.raises(ServeError, match=r"failed a request: .*takes at most"):
        InProcess(loop).run([[7] * MAX_SEQ_LEN], 1)


def test_a_profile_clocks_steps_in_which_everybody_decodes(tokenizer: EngineTokenizer) -> None:
    ticks = count()
    clock = StageClock(lambda: float(next(ticks)))
    runtime = ScriptedRuntime(512)
    loop = EngineLoop(runtime, settings(max_num_tokens=16), tokenizer, vocab=512, stages=clock)
    told = profile(loop, clock, PROMPTS, steps=5)
    assert (told.concurrency, told.steps) == (3, 5)
    assert all(told.ms[stage] == 1000.0 for stage in ("prepare", "forward", "sampling", "detokenize"))
    assert told.ms["guard"] == 2000.0, "before the step, and once more for what it wrote"
    assert told.step_ms == sum(told.ms.values()) == 17_000.0
    clocked = [batch for batch in runtime.forwards if len(batch.runs) == 3 and len(batch.token_ids) == 3]
    assert len(clocked) == 5, "a token for each of the three, and no prompt among them"
    assert runtime.forwards[-5:] == clocked
    assert not loop.has_work


def test_transformers_answers_in_a_process_of_its_own_and_its_end_is_told(tiny_engine: Engine) -> None:
    with Transformers("peer", tiny_engine.checkpoint, "float32", os.environ) as peer:
        assert peer.about["attention"] == "sdpa"
        run = peer.run(PROMPTS, 4)
        assert (run.output_tokens, run.decode_tokens_per_s) == (12, None)
        assert run.seconds > 0
        peer._process.kill()
        with pytest.raises(ServeError, match="peer ended with exit code -9"):
            peer.run(PROMPTS, 4)
    assert peer._process.returncode == -9
