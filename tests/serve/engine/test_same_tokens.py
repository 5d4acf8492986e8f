"""The same tokens whatever a request meets on its way, on the real torch runtime.

In reference precision, tokens are exactly those of the request alone. In engine precision, every token is within a tolerance
of the reference's best after the same tokens; so two answers part only where the reference has two choices that close.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from driving import random_prompt, request, serve, settings

from roundhouse.build.engine import Engine
from roundhouse.errors import SetupError
from roundhouse.plugins.native_interface import load_kernels
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.request import Chunk, Request
from roundhouse.serve.runtimes import create_loop
from roundhouse.serve.settings import EngineSettings

BEGINNING = random_prompt(90)
PROMPTS = {
    f"p{length}": BEGINNING[: length - own] + random_prompt(own, seed=length)
    for length, own in ((1, 1), (8, 3), (13, 3), (24, 3), (40, 3), (90, 3))
}
PROMPTS["other"] = random_prompt(8, seed=99) + BEGINNING[8:35]
"""They begin alike, and end each in its own way; but the last one goes on like the others after another first page."""
NEW = 12
FEW_PAGES = 17
"""The longest request needs 13; those before it begin with 12 and want 20."""
TOLERANCE = {"bf16": 0.4, "fp8": 1.5}
"""In logits, by the type of KV pages. The worst of 3,000 tokens were 0.25 and 1.1; logits have a standard deviation of 1.7."""

Answers = dict[tuple[str, int], list[int]]
"""Tokens by request and index."""
Start = Callable[..., EngineLoop]
"""Makes a fresh loop; takes what differs from the usual settings."""


def answers_of(loop: EngineLoop, *asked: Request) -> Answers:
    found: Answers = {}
    for outputs in serve(loop, *asked).values():
        for chunk in outputs:
            assert isinstance(chunk, Chunk), chunk
            found.setdefault((chunk.request_id, chunk.index), []).extend(chunk.token_ids)
    return found


def one_by_one(loop: EngineLoop, asked: list[Request]) -> Answers:
    found: Answers = {}
    for each in asked:
        found |= answers_of(loop, each)
    return found


def alone(start: Start, asked: list[Request]) -> Answers:
    return one_by_one(start(), asked)


def sharing_what_they_begin_with(start: Start, asked: list[Request]) -> Answers:
    loop = start(prefix_reuse=True)
    found = one_by_one(loop, asked)
    assert loop.status().cached_tokens >= 8 + 16 + 32  # full pages of the one before
    return found


def in_a_mixed_batch(start: Start, asked: list[Request]) -> Answers:
    return answers_of(start(), *asked)


def in_chunks(start: Start, asked: list[Request]) -> Answers:
    return answers_of(start(max_num_tokens=7), *asked)


def with_prompts_found_in_the_cache(start: Start, asked: list[Request]) -> Answers:
    loop = start(prefix_reuse=True)
    answers_of(loop, *asked)
    before = loop.status().cached_tokens
    found = answers_of(loop, *asked)
    assert loop.status().cached_tokens - before >= 8 + 16 + 32 + 88  # every full page but a prompt's last token
    return found


def preempted(start: Start, asked: list[Request], **keys: Any) -> Answers:
    loop = start(pages=FEW_PAGES, **keys)
    found = answers_of(loop, *asked)
    assert loop.status().preemptions
    return found


def preempted_with_prefix_reuse(start: Start, asked: list[Request]) -> Answers:
    return preempted(start, asked, prefix_reuse=True)


SITUATIONS = [
    sharing_what_they_begin_with,
    in_a_mixed_batch,
    in_chunks,
    with_prompts_found_in_the_cache,
    preempted,
    preempted_with_prefix_reuse,
]
ASKED: dict[str, dict[str, Any]] = {
    "greedy": {},
    "greedy, n": {"n": 2},
    "seeded": {"temperature": 1.0, "seed": 7},
    "seeded, n": {"temperature": 1.0, "seed": 7, "n": 2},
}


def requests(kind: str) -> list[Request]:
    return [request(name, prompt, max_tokens=NEW, **ASKED[kind]) for name, prompt in PROMPTS.items()]


@pytest.fixture(scope="module")
def exactly(build_engine: Any) -> Start:
    """Loops of the default recipe, INT4 AWQ weights and FP8 KV, in reference precision."""
    return lambda **keys: create_loop(build_engine(), settings(precision="reference", **{"max_num_tokens": 128, **keys}))


@pytest.fixture(scope="module")
def expected(exactly: Start) -> dict[str, Answers]:
    """What each kind of request gets alone."""
    return {kind: alone(exactly, requests(kind)) for kind in ASKED}


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kind", ASKED)
def test_the_reference_gives_exactly_the_tokens_of_the_request_alone(
    exactly: Start, expected: dict[str, Answers], kind: str, situation: Callable[[Start, list[Request]], Answers]
) -> None:
    assert situation(exactly, requests(kind)) == expected[kind]


def test_answers_of_one_request_are_those_of_single_ones(expected: dict[str, Answers]) -> None:
    for (name, index), tokens in expected["greedy, n"].items():
        assert tokens == expected["greedy"][name, 0], index
    for (name, index), tokens in expected["seeded, n"].items():
        assert (tokens == expected["seeded"][name, 0]) is (index == 0)


def shortfall(reference: EngineLoop, prompt: list[int], answer: list[int]) -> np.ndarray:
    """How far each token's logit in the reference lies below the best one, after the same tokens: float32 [tokens]."""
    reference.submit(request("r", prompt + answer[:-1]))
    batch, _ = reference._scheduler.schedule()
    every_choice = dataclasses.replace(batch, sample_rows=np.arange(len(prompt) - 1, len(batch.token_ids)))
    logits = reference._runtime.forward(reference._runtime.prepare(every_choice))
    reference.cancel("r")
    return logits.max(axis=1) - logits[np.arange(len(answer)), answer]


@pytest.fixture(params=["native", "torch"])
def kernels(request: pytest.FixtureRequest, session_home: Any) -> str:
    if request.param == "native":
        try:
            load_kernels(session_home.kernels)
        except SetupError as error:
            pytest.skip(str(error))
    return request.param


@pytest.mark.parametrize("situation", [alone, *SITUATIONS])
@pytest.mark.parametrize(("weights", "kv_cache"), [("bf16", "bf16"), ("int4_awq", "fp8")])
def test_the_engine_chooses_what_the_reference_has_at_or_near_the_top(
    build_engine: Any, kernels: str, weights: str, kv_cache: str, situation: Callable[[Start, list[Request]], Answers]
) -> None:
    engine: Engine = build_engine(weights=weights, kv_cache=kv_cache)

    def start(**keys: Any) -> EngineLoop:
        usual = settings(**{"max_num_tokens": 128, **keys})
        return create_loop(engine, EngineSettings.model_validate({**usual.model_dump(), "kernels": kernels}))

    reference = create_loop(engine, settings(precision="reference", max_num_tokens=128))
    for (name, _), tokens in situation(start, requests("greedy")).items():
        assert len(tokens) == NEW
        assert shortfall(reference, PROMPTS[name], tokens).max() < TOLERANCE[kv_cache], name


def test_a_page_of_another_prompt_is_beyond_any_tolerance(exactly: Start, expected: dict[str, Answers]) -> None:
    reference, other_page = exactly(), random_prompt(8, seed=98)
    worst = [
        shortfall(reference, [*other_page, *PROMPTS[name][8:]], tokens).max()
        for (name, _), tokens in expected["greedy"].items()
    ]
    assert sorted(worst)[1] > max(TOLERANCE.values())  # of all answers but one
