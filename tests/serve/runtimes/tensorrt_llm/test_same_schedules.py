"""The step path of TensorRT-LLM engines on in-memory twins, beside the torch runtime: same pages, offsets, order and tokens.

The twin reads pages as upstream's attention does and computes with the torch model in float32; so does the torch runtime's
reference. Every difference would be a wrong table, a wrong length or a wrong order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from driving import MAX_SEQ_LEN, PAGE_TOKENS, drain, random_prompt, request, settings, tokens
from engine_configs import geometry
from engine_twins import SessionTwin, World, float32_model
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from roundhouse.build.engine import Engine
from roundhouse.serve.engine.batch import StepBatch
from roundhouse.serve.engine.integrity import create_integrity
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.request import Output, Request
from roundhouse.serve.engine.tokenizer import load_tokenizer
from roundhouse.serve.runtimes import create_runtime
from roundhouse.serve.runtimes.tensorrt_llm.steps import CONTEXT
from roundhouse.serve.settings import EngineSettings

WORLDS = [(1, 1), (2, 1), (1, 2), (2, 2)]


@pytest.fixture(scope="module")
def engine(build_engine: Any) -> Engine:
    return build_engine("llama", weights="bf16", kv_cache="bf16")


@pytest.fixture(scope="module")
def model(engine: Engine) -> Any:
    return float32_model(engine.checkpoint)


@dataclass
class Watched:
    """A loop, and every batch that its runtime was given."""

    loop: EngineLoop
    batches: list[StepBatch] = field(default_factory=list)

    def watch(self, runtime: Any) -> Watched:
        prepare = runtime.prepare

        def watched(batch: StepBatch) -> Any:
            self.batches.append(batch)
            return prepare(batch)

        runtime.prepare = watched
        return self

    def serve(self, arrivals: list[list[Request]]) -> dict[str, list[int]]:
        """Submit some requests before each of the first steps; returns every one's tokens."""
        outputs: list[Output] = []
        for arriving in arrivals:
            for each in arriving:
                self.loop.submit(each)
            outputs += self.loop.step()
            self.loop.check_integrity()
        outputs += drain(self.loop)
        names = [each.request_id for arriving in arrivals for each in arriving]
        return {name: tokens([output for output in outputs if output.request_id == name]) for name in names}


def watched_torch(engine: Engine, how: EngineSettings) -> Watched:
    runtime = create_runtime(engine, how)
    loop = EngineLoop(runtime, how, load_tokenizer(engine.checkpoint), vocab=512)
    return Watched(loop).watch(runtime)


def watched_world(engine: Engine, world: World, how: EngineSettings) -> Watched:
    runtime = world.runtime
    integrity = create_integrity(how, runtime.page_bytes, runtime.page_guard)
    loop = EngineLoop(runtime, how, load_tokenizer(engine.checkpoint), vocab=512, integrity=integrity)
    return Watched(loop).watch(runtime)


def start(model: Any, how: EngineSettings, tp: int = 1, pp: int = 1, **plugins: Any) -> World:
    build = {"max_batch_size": how.max_batch_size, "max_num_tokens": how.max_num_tokens, "max_seq_len": MAX_SEQ_LEN}
    return World(geometry(tp=tp, pp=pp, build=build, plugins=plugins), model, pages=how.kv.pages)


def pages_that_were_read(session: SessionTwin, batches: list[StepBatch]) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """Of every step, pages by row: out of the engine's offsets, and of the batch in the engine's order."""
    blocks = len(session.part.layers) * 2
    for told, batch in zip(session.steps, batches, strict=True):
        offsets = told["host_kv_cache_block_offsets"][0]
        assert (offsets[:, 1] == offsets[:, 0] + 1).all()
        generates = [count == 1 and sequence_len > prompt for count, sequence_len, prompt in _lengths(batch)]
        order = sorted(range(len(generates)), key=lambda row: generates[row])
        expected = [batch.page_table[row, : batch.page_count[row]].tolist() for row in order]
        yield [(row[0, : len(pages)] // blocks).tolist() for row, pages in zip(offsets, expected, strict=True)], expected


def _lengths(batch: StepBatch) -> Iterator[tuple[int, int, int]]:
    counts = np.diff(batch.query_start).tolist()
    for count, context, (sequence, _) in zip(counts, batch.context_len.tolist(), batch.runs, strict=True):
        yield count, context, sequence.prompt_tokens


def assert_the_same(engine: Engine, model: Any, how: EngineSettings, arrivals: list[list[Request]], world: World) -> Watched:
    """Serve on both, compare every step and every token; returns the torch runtime's side."""
    one, other = watched_torch(engine, how), watched_world(engine, world, how)
    expected = one.serve(arrivals)
    got = other.serve(arrivals)
    world.close()
    assert got == expected
    assert len(one.batches) == len(other.batches)
    for mine, yours in zip(one.batches, other.batches, strict=True):
        assert [sequence.request_id for sequence, _ in mine.runs] == [sequence.request_id for sequence, _ in yours.runs]
        for name in ("token_ids", "positions", "query_start", "context_len", "page_table", "page_count", "expected_tags"):
            assert np.array_equal(getattr(mine, name), getattr(yours, name)), name
    for session in world.sessions:
        for read, expected_pages in pages_that_were_read(session, other.batches):
            assert read == expected_pages
    return one


@st.composite
def schedules(draw: st.DrawFn) -> list[list[Request]]:
    """Up to five requests that come before the first steps; many begin alike."""
    arrivals: list[list[Request]] = []
    for number in range(draw(st.integers(1, 5))):
        same, own = draw(st.integers(0, 40)), draw(st.integers(1, 30))
        prompt = [5] * same + random_prompt(own, seed=number)
        name, most = str(number), draw(st.integers(1, 15))
        asked = request(name, prompt, max_tokens=most)
        if draw(st.booleans()) or not arrivals:
            arrivals.append([asked])
        else:
            arrivals[-1].append(asked)
    return arrivals


@given(
    arrivals=schedules(),
    budget=st.sampled_from([12, 24, 48]),
    batch=st.integers(1, 5),
    pages=st.sampled_from([12, 20, 64]),
    reuse=st.booleans(),
    world=st.sampled_from([WORLDS[0], WORLDS[0], *WORLDS[1:]]),
)
@hypothesis_settings(max_examples=10)
def test_any_schedule_is_the_torch_runtime_s(
    engine: Engine, model: Any, arrivals: Any, budget: int, batch: int, pages: int, reuse: bool, world: tuple[int, int]
) -> None:
    keys = {"max_num_tokens": budget, "max_batch_size": min(batch, budget), "pages": pages, "prefix_reuse": reuse}
    how = settings(precision="reference", **keys)
    assert_the_same(engine, model, how, arrivals, start(model, how, *world))


@pytest.mark.parametrize(("tp", "pp"), WORLDS)
def test_preemption_chunks_and_found_prefixes_together(engine: Engine, model: Any, tp: int, pp: int) -> None:
    """Three answers grow to twelve pages each in a pool of twenty, so somebody is preempted; a fourth finds a prefix."""
    how = settings(precision="reference", pages=20, max_num_tokens=24, max_batch_size=4, prefix_reuse=True)
    prompt = random_prompt(40, seed=3)
    growing = [request(str(number), [*prompt, number], max_tokens=50) for number in range(3)]
    late = request("late", [*prompt, 9], max_tokens=5)
    one = assert_the_same(engine, model, how, [growing[:1], [], [], growing[1:], [late]], start(model, how, tp, pp))
    status = one.loop.status()
    assert status.preemptions > 0
    assert status.cached_tokens > 0
    kinds = [{count > 1 for _, count in batch.runs} for batch in one.batches]
    assert {True, False} in kinds, "contexts and generations in one step"
    assert any(sequence_len - count > 0 for batch in one.batches for count, sequence_len, _ in _lengths(batch) if count > 1)


def test_whole_prompts_without_paged_context_attention(engine: Engine, model: Any) -> None:
    """Such engines get no chunk and no found prefix, also when preempted: the twin refuses a context that goes on."""
    changes = {"prefix_reuse": False, "chunked_prompts": False, "max_seq_len": 48}
    how = settings(precision="reference", pages=8, max_num_tokens=48, max_batch_size=4).model_copy(update=changes)
    world = start(model, how, use_paged_context_fmha=False)
    arrivals = [[request(str(number), random_prompt(14 + number, seed=number), max_tokens=25) for number in range(4)]]
    one = assert_the_same(engine, model, how, arrivals, world)
    assert one.loop.status().preemptions > 0
    counts = [count for batch in one.batches for _, count in batch.runs if count > 1]
    assert len(counts) == 4 + one.loop.status().preemptions
    for told in world.sessions[0].steps:
        contexts = told["host_request_types"] == CONTEXT
        past, lengths = told["host_past_key_value_lengths"][contexts], told["host_context_lengths"][contexts]
        assert past.tolist() == lengths.tolist()


def test_page_size_and_longest_request_are_the_twins_as_well() -> None:
    built = geometry()
    assert (built.page_tokens, built.build_config.max_seq_len) == (PAGE_TOKENS, MAX_SEQ_LEN)
