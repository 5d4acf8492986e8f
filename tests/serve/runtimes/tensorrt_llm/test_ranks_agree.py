"""The page check before the model, on every rank: one verdict, and what fails is gone before the engine's inputs are made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from driving import failure, settings
from engine_configs import geometry
from engine_twins import LinkTwin, Meeting, World, float32_model
from faults import FAULTS, serve_with_newcomer
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from step_batches import run

from roundhouse.errors import ServeError
from roundhouse.plugins.torch_guard import torch_page_guard
from roundhouse.serve.engine.batch import make_batch
from roundhouse.serve.engine.integrity import create_integrity
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.request import Output
from roundhouse.serve.runtimes.tensorrt_llm.link import Begin, Check, End, Forward, NoLink, Prepare
from roundhouse.serve.runtimes.tensorrt_llm.rank import follow
from roundhouse.serve.runtimes.tensorrt_llm.steps import make_step
from roundhouse.serve.runtimes.tensorrt_llm.verdict import worst
from roundhouse.serve.settings import EngineSettings

_BUILT = {"max_num_tokens": 128}


@pytest.fixture(scope="module")
def model(build_engine: Any) -> Any:
    return float32_model(build_engine("llama", weights="bf16", kv_cache="bf16").checkpoint)


@pytest.fixture
def worlds(model: Any) -> Iterator[Any]:
    """Start a world; all are ended with the test."""
    started: list[World] = []

    def start(tp: int = 1, pp: int = 1, **keys: Any) -> World:
        started.append(World(geometry(tp=tp, pp=pp, build=_BUILT), model, pages=64, **keys))
        return started[-1]

    yield start
    for world in started:
        world.close()


def loop_of(world: World, tokenizer: Any, how: EngineSettings) -> EngineLoop:
    integrity = create_integrity(how, world.runtime.page_bytes, world.runtime.page_guard)
    return EngineLoop(world.runtime, how, tokenizer, vocab=512, integrity=integrity)


@pytest.fixture(scope="module")
def expected(model: Any, tokenizer: Any) -> dict[str, list[Output]]:
    """What everybody gets where nothing is wrong, of one rank."""
    world = World(geometry(build=_BUILT), model, pages=64)
    return serve_with_newcomer(loop_of(world, tokenizer, settings(max_num_tokens=128)), lambda: None)


@pytest.mark.parametrize(("tp", "pp"), [(1, 1), (2, 2)])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_books_ends_its_victim_and_changes_no_neighbour(
    worlds: Any, tokenizer: Any, expected: dict[str, list[Output]], fault: str, tp: int, pp: int
) -> None:
    loop = loop_of(worlds(tp, pp), tokenizer, settings(max_num_tokens=128))
    outputs = serve_with_newcomer(loop, lambda: FAULTS[fault](loop, 1))
    victim = outputs.pop("victim")
    assert failure(victim).code == "page_tag_mismatch"
    assert victim[:-1] == expected["victim"][:2]
    assert outputs == {name: expected[name] for name in outputs}


@pytest.mark.parametrize("rank", [1, 3])
def test_what_one_rank_finds_wrong_runs_on_none(
    worlds: Any, tokenizer: Any, expected: dict[str, list[Output]], rank: int
) -> None:
    """A table that was damaged on its way to one GPU: that rank sees it, and every rank leaves the row out."""
    damages = iter([False, False, True])

    def guard(page_table: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        if next(damages, False):
            page_table[1, 0] = page_table[0, 0]  # the victim's first page, as its neighbour's
        return torch_page_guard(page_table, *others)

    world = worlds(2, 2, guards={rank: guard})
    outputs = serve_with_newcomer(loop_of(world, tokenizer, settings(max_num_tokens=128)), lambda: None)
    failed = [name for name, told in outputs.items() if told != expected[name]]
    assert len(failed) == 1
    assert failure(outputs[failed[0]]).code == "page_tag_mismatch"
    rows = {tuple(len(told["host_request_types"]) for told in session.steps) for session in world.sessions}
    assert len(rows) == 1, "every rank ran the same rows in every step"


def test_the_check_comes_before_the_model_in_every_step(worlds: Any, tokenizer: Any) -> None:
    happened: list[str] = []

    def guard(*tables: torch.Tensor) -> torch.Tensor:
        happened.append("check")
        return torch_page_guard(*tables)

    world = worlds(guards={0: guard})
    world.sessions[0].on_run = lambda: happened.append("model")
    serve_with_newcomer(loop_of(world, tokenizer, settings(max_num_tokens=128)), lambda: None)
    assert happened == ["check", "model"] * (len(happened) // 2)
    assert len(happened) > 20


@pytest.mark.parametrize("guard", ["off", "tags", "tags+content"])
def test_every_level_of_the_guard_gives_the_same_tokens(
    worlds: Any, tokenizer: Any, expected: dict[str, list[Output]], guard: Any
) -> None:
    world = worlds()
    assert serve_with_newcomer(loop_of(world, tokenizer, settings(guard=guard, max_num_tokens=128)), lambda: None) == expected
    checked = any(isinstance(command, Check) for command in world.links[0].heard)
    assert checked is (guard != "off")


def test_a_page_that_was_overwritten_ends_its_holder(worlds: Any, tokenizer: Any) -> None:
    loop = loop_of(world := worlds(), tokenizer, settings(guard="tags+content"))

    def damage() -> None:
        page = loop._live["victim"].answers[0].grants[1].page
        content = world.runtime.page_bytes(page)
        content[100] ^= 1
        world.runtime.write_page(page, content)

    outputs = serve_with_newcomer(loop, damage)
    assert failure(outputs["victim"]).code == "page_content_mismatch"
    assert all(told[-1].finish_reason == "length" for name, told in outputs.items() if name != "victim")


def test_rows_of_a_page_are_tokens(worlds: Any) -> None:
    """As the drill looks at pages: what belongs to one token of a page lies in one row of every plane."""
    runtime = worlds().runtime
    planes = runtime.page_bytes(3).size // (runtime.page_tokens * runtime.row_bytes)
    assert (runtime.page_tokens, runtime.row_bytes, planes) == (8, 32 * 4, 2 * 2 * 2)


@given(arrays.arrays(np.int32, st.tuples(st.integers(1, 4), st.integers(0, 5)), elements=st.integers(-1, 6)))
def test_the_verdict_is_the_first_column_that_anybody_found(answers: Any) -> None:
    verdict = worst(list(answers))
    assert verdict.dtype == np.int32
    for column, found in zip(verdict.tolist(), answers.T.tolist(), strict=True):
        bad = [each for each in found if each >= 0]
        assert column == (min(bad) if bad else -1)


def followed(commands: list[Any], engine: Any) -> None:
    """Let a rank 1 follow these commands; whatever it raises is raised here."""
    meeting = Meeting(2)
    links = [LinkTwin(meeting, {}, rank) for rank in (0, 1)]  # type: ignore[arg-type]  # nothing is sent
    raised: list[BaseException] = []

    def other() -> None:
        try:
            follow(links[1], lambda pages: engine)
        except BaseException as error:
            raised.append(error)
            meeting.abort()

    thread = threading.Thread(target=other)
    thread.start()
    try:
        for command in commands:
            links[0].command(command)
            if isinstance(command, Begin):
                links[0].exchange(0)
            if isinstance(command, Check):
                links[0].exchange(np.array([2], dtype=np.int32))
    except threading.BrokenBarrierError:
        pass
    thread.join(60)
    if raised:
        raise raised[0]


class Idle:
    """A rank that finds nothing wrong itself."""

    def prepare(self, step: Any) -> Any:
        return type("Prepared", (), dict.fromkeys(("page_table", "page_count", "expected_tags")) | {"step": step})()

    def first_bad(self, *tables: Any) -> Any:
        return np.array([-1], dtype=np.int32)

    def forward(self, prepared: Any) -> Any:
        raise AssertionError("it ran")


STEP = make_step(make_batch([run(9, 0, 0, 9)]), 4)
TAGS = np.zeros(8, dtype=np.int32)


@pytest.mark.parametrize(
    ("commands", "says"),
    [
        ([Forward(4)], "step 4 is to run and was not prepared"),
        ([Prepare(STEP), Forward(5)], "step 5 is to run and was not prepared"),
        ([Prepare(STEP), Check(TAGS), Forward(4)], "step 4 is to run although a page of it is not right"),
        ([Check(TAGS)], "rank 1 heard Check out of turn"),
        ([Begin(3)], "rank 1 heard Begin out of turn"),
    ],
)
def test_a_rank_refuses_what_must_not_run(commands: list[Any], says: str) -> None:
    """Another rank's verdict counts like its own."""
    with pytest.raises(ServeError, match=says):
        followed([Begin(64), *commands, End()], Idle())


def test_a_rank_ends_when_it_is_told_to_also_before_anything_began() -> None:
    followed([End()], None)
    followed([Begin(64), End()], Idle())


def test_a_rank_that_fails_is_heard_of(worlds: Any, tokenizer: Any) -> None:
    world = worlds(2)
    loop = loop_of(world, tokenizer, settings())

    def fail() -> None:
        raise ServeError("the GPU is gone")

    world.sessions[1].on_run = fail
    with pytest.raises(threading.BrokenBarrierError):
        serve_with_newcomer(loop, lambda: None)
    with pytest.raises(ServeError, match="the GPU is gone"):
        raise world.errors.pop()


def test_an_engine_with_tensors_that_nobody_knows_is_not_loaded(model: Any) -> None:
    with pytest.raises(ServeError, match="has tensors that this version does not know: lora_ranks, prompt_table"):
        World(geometry(), model, pages=8, extra_inputs=frozenset({"lora_ranks", "prompt_table"}))


def test_a_rank_alone_talks_to_nobody() -> None:
    link = NoLink()
    assert link.command(Forward(3)) == Forward(3)
    assert link.exchange(5) == [5]
