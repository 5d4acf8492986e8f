"""Log-probabilities: those of the model's own logits, whatever the request does to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.serve.engine.request import SamplingParams, TokenLogprob
from roundhouse.serve.engine.sampling import choose_tokens
from roundhouse.serve.engine.sampling_state import SamplingState


def chosen(logits: np.ndarray, **params: Any) -> TokenLogprob:
    (choice,) = choose_tokens(logits[None], [SamplingState(SamplingParams(**params), [1, 2])])
    assert choice.logprob is not None
    assert choice.logprob.token_id == choice.token
    return choice.logprob


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.one_of(st.integers(1, 30), st.integers(100, 3000)),
    scale=st.sampled_from([0.0, 1.0, 10.0, 1e4]),
    count=st.integers(0, 20),
    params=st.sampled_from(
        [{}, {"temperature": 0.2, "top_k": 3}, {"repetition_penalty": 9.0}, {"logit_bias": {0: 50.0}}, {"min_tokens": 1}]
    ),
)
def test_they_are_those_of_a_float64_softmax(seed: int, size: int, scale: float, count: int, params: dict[str, Any]) -> None:
    random = np.random.default_rng(seed)
    logits = (random.normal(size=size) * scale).astype(np.float32)
    if "repetition_penalty" in params:
        logits = np.concatenate((logits, np.zeros(3, dtype=np.float32)))  # room for the prompt's tokens
    exact = logits.astype(np.float64)
    expected = exact - exact.max() - math.log(np.exp(exact - exact.max()).sum())
    found = chosen(logits, logprobs=count, seed=seed, **params)
    assert found.logprob == pytest.approx(expected[found.token_id], rel=1e-5, abs=1e-4)
    order = np.lexsort((np.arange(len(exact)), -exact))[:count]
    assert [token for token, _ in found.top] == order.tolist()
    assert [value for _, value in found.top] == pytest.approx(expected[order].tolist(), rel=1e-5, abs=1e-4)


def test_impossible_tokens_are_not_among_the_likeliest() -> None:
    logits = np.array([-np.inf, 0.0, -np.inf, 0.0], dtype=np.float32)
    found = chosen(logits, logprobs=4)
    assert found == TokenLogprob(1, -math.log(2), [(1, -math.log(2)), (3, -math.log(2))])


def test_none_are_given_that_nobody_asked_for() -> None:
    (choice,) = choose_tokens(np.zeros((1, 4), dtype=np.float32), [SamplingState(SamplingParams())])
    assert choice.logprob is None
    assert chosen(np.zeros(4, dtype=np.float32), logprobs=0).top == []
