"""Penalties and bias, against a plain float64 reference."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.serve.engine.request import SamplingParams
from roundhouse.serve.engine.sampling import choose_tokens
from roundhouse.serve.engine.sampling_state import SamplingState

VOCAB = 700

tokens = st.lists(st.integers(0, VOCAB - 1), max_size=600)


def reference(logits: np.ndarray, params: SamplingParams, prompt: list[int], answer: list[int]) -> np.ndarray:
    changed = logits.astype(np.float64)
    for token in {*prompt, *answer}:
        value = changed[token]
        changed[token] = value / params.repetition_penalty if value > 0 else value * params.repetition_penalty
    for token, times in Counter(answer).items():
        changed[token] -= params.presence_penalty + params.frequency_penalty * times
    for token, bias in params.logit_bias.items():
        changed[token] += bias
    return changed


def changed(logits: np.ndarray, params: SamplingParams, prompt: list[int], answer: list[int]) -> np.ndarray:
    state = SamplingState(params, prompt)
    for token in answer:
        state.commit(token)
    values, ids = state.candidates(logits, np.empty_like(logits))
    assert ids is None
    return values.copy()


@given(
    seed=st.integers(0, 2**32 - 1),
    params=st.builds(
        SamplingParams,
        repetition_penalty=st.sampled_from([1.0, 0.5, 1.1, 3.0]),
        presence_penalty=st.sampled_from([0.0, -1.5, 0.7]),
        frequency_penalty=st.sampled_from([0.0, -0.2, 0.3]),
        logit_bias=st.dictionaries(st.integers(0, VOCAB - 1), st.floats(-100, 100), max_size=5),
    ),
    prompt=tokens,
    answer=tokens,
)
def test_what_they_change(seed: int, params: SamplingParams, prompt: list[int], answer: list[int]) -> None:
    logits = np.random.default_rng(seed).normal(size=VOCAB).astype(np.float32) * 5
    expected = reference(logits, params, prompt, answer)
    np.testing.assert_allclose(changed(logits, params, prompt, answer), expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    "params",
    [
        {"repetition_penalty": 1e-300},
        {"repetition_penalty": 1e300},
        {"logit_bias": {0: 1e308, 1: -1e308, 2: 1.0}},
        {"frequency_penalty": 2.0, "presence_penalty": -2.0},
    ],
)
def test_a_finite_logit_stays_finite_and_an_impossible_token_impossible(params: dict[str, object]) -> None:
    logits = np.array([3e38, -3e38, -np.inf, 5.0], dtype=np.float32)
    state = SamplingState(SamplingParams(temperature=1.0, seed=0, **params), [0, 1, 2, 3])
    for token in (0, 1, 2, 3):
        state.commit(token)
    with np.errstate(over="ignore"):  # as for a whole batch
        values, _ = state.candidates(logits, np.empty_like(logits))
    assert np.isfinite(values[[0, 1, 3]]).all()
    assert values[2] == -np.inf
    (choice,) = choose_tokens(logits[None], [state])
    assert choice.token in (0, 1, 3)


def test_a_bias_decides_between_greedy_tokens() -> None:
    logits = np.array([[1.0, 2.0, 3.0]], dtype=np.float32)
    for bias, token in (({0: 5.0}, 0), ({2: -5.0}, 1), ({0: -1e30, 1: -1e30, 2: -1e30}, 0)):
        (choice,) = choose_tokens(logits, [SamplingState(SamplingParams(logit_bias=bias))])
        assert choice.token == token


def test_penalties_keep_a_greedy_answer_from_repeating_itself() -> None:
    logits = np.linspace(2.0, 1.0, 50, dtype=np.float32)[None]
    state = SamplingState(SamplingParams(presence_penalty=2.0), [0, 1])
    answer = []
    for _ in range(10):
        (choice,) = choose_tokens(logits, [state])
        state.commit(choice.token)
        answer.append(choice.token)
    assert answer == list(range(10))  # the prompt's tokens are free: only the repetition penalty counts them
