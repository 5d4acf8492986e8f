"""Filters and draws of one row, against a plain float64 reference that sorts everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from roundhouse.serve.engine.filters import draw, largest
from roundhouse.serve.engine.request import SamplingParams

MARGIN = 1e-5
"""What float32 arithmetic may move; cases nearer to a boundary have two right answers."""

seeds = st.integers(0, 2**32 - 1)
sizes = st.one_of(st.integers(1, 40), st.integers(100, 600), st.sampled_from([128, 1280, 5000]))


def random_logits(seed: int, size: int, scale: float, digits: int, impossible: float) -> np.ndarray:
    """Float32 [size]: some equal, some −inf, one finite at least."""
    random = np.random.default_rng(seed)
    logits = np.round(random.normal(size=size) * scale, digits).astype(np.float32)
    logits[random.random(size) < impossible] = -np.inf
    logits[random.integers(size)] = scale
    return logits


logits_strategy = st.builds(
    random_logits,
    seeds,
    sizes,
    scale=st.sampled_from([0.0, 0.5, 2.0, 8.0, 40.0]),
    digits=st.sampled_from([1, 6]),
    impossible=st.sampled_from([0.0, 0.3, 0.95]),
)
params_strategy = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.3, 0.8, 1.0, 1.7, 20.0]),
    top_k=st.one_of(st.just(0), st.integers(1, 300)),
    top_p=st.one_of(st.just(1.0), st.floats(0.01, 1.0, exclude_min=True)),
    min_p=st.one_of(st.just(0.0), st.floats(0.0, 1.0)),
)


def reference(logits: np.ndarray, params: SamplingParams) -> tuple[np.ndarray, np.ndarray]:
    """The kept ids, ascending, and their probabilities. Rejects what is too near to a boundary to tell."""
    exact = logits.astype(np.float64)
    order = np.lexsort((np.arange(len(exact)), -exact))
    if params.top_k:
        order = order[: params.top_k]
    weights = np.exp((exact[order] - exact[order[0]]) / params.temperature)
    if params.top_p < 1:
        before = (np.cumsum(weights) - weights) / weights.sum()
        assume(np.abs(before - params.top_p).min() > MARGIN)
        count = max(1, int(np.count_nonzero(before < params.top_p)))
        if count < len(order):  # near the cutoff float32 may take two different logits for equal
            assume(exact[order[count - 1]] == exact[order[count]] or weights[count] < weights[count - 1] * (1 - MARGIN))
        order, weights = order[:count], weights[:count]
    if params.min_p:
        assume(np.abs(weights - params.min_p).min() > MARGIN or params.min_p == 1.0)
        assume(params.min_p < 1.0 or not np.any((weights < 1) & (weights > 1 - MARGIN)))
        order, weights = order[weights >= params.min_p], weights[weights >= params.min_p]
    by_id = np.argsort(order)
    return order[by_id], weights[by_id] / weights.sum()


def drawn(logits: np.ndarray, params: SamplingParams, uniform: float) -> int:
    with np.errstate(over="ignore"):
        return draw(logits, logits.max(), params, uniform, np.empty_like(logits))


@given(logits_strategy, params_strategy, st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20))
def test_a_uniform_number_draws_what_the_reference_draws(
    logits: np.ndarray, params: SamplingParams, uniforms: list[float]
) -> None:
    kept, probabilities = reference(logits, params)
    cumulative = np.cumsum(probabilities)
    for uniform in uniforms:
        token = drawn(logits, params, uniform)
        place = np.searchsorted(cumulative, uniform, side="right")
        if np.abs(cumulative - uniform).min() > MARGIN:
            assert token == kept[min(place, len(kept) - 1)]
        assert token in kept
        assert logits[token] > -np.inf


@given(logits_strategy, st.integers(1, 400))
def test_the_largest_are_those_of_a_sorted_row(logits: np.ndarray, count: int) -> None:
    order = np.lexsort((np.arange(len(logits)), -logits))
    assert largest(logits, count).tolist() == sorted(order[:count].tolist())


@pytest.mark.parametrize("uniform", [0.0, 0.25, 1 - 2**-53])
@pytest.mark.parametrize("params", [{}, {"top_k": 3}, {"top_p": 0.5}, {"min_p": 0.2}, {"top_k": 3, "top_p": 0.9, "min_p": 1.0}])
def test_equal_logits(uniform: float, params: dict[str, float]) -> None:
    logits = np.full(1000, -3.0, dtype=np.float32)
    kept = {"top_k": 3}.get(next(iter(params), ""), 1000)
    if params == {"top_p": 0.5}:
        kept = 500
    expected = int(uniform * kept)
    assert drawn(logits, SamplingParams(temperature=1.0, **params), uniform) == expected


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_the_ends_of_the_unit_interval_never_draw_an_impossible_token(uniform: float) -> None:
    for possible in ([0], [999], [128], [127, 500], [3, 255]):
        logits = np.full(1000, -np.inf, dtype=np.float32)
        logits[possible] = 1.0
        assert drawn(logits, SamplingParams(temperature=1.0), uniform) in possible


@pytest.mark.parametrize("temperature", [5e-324, 1e-30, 1e-6])
def test_a_tiny_temperature_draws_the_likeliest(temperature: float) -> None:
    logits = np.array([0.2, 0.5, -np.inf, 0.3], dtype=np.float32)
    assert {drawn(logits, SamplingParams(temperature=temperature), u) for u in (0.0, 0.5, 0.999)} == {1}


@pytest.mark.parametrize("temperature", [1e30, 1e308])
def test_a_huge_temperature_draws_any_possible_token(temperature: float) -> None:
    logits = np.array([-30.0, 50.0, -np.inf, 3e4], dtype=np.float32)
    uniforms = np.linspace(0, 1, 30, endpoint=False)
    assert {drawn(logits, SamplingParams(temperature=temperature), u) for u in uniforms} == {0, 1, 3}


@pytest.mark.parametrize("params", [{}, {"top_k": 2}, {"top_p": 0.9}, {"min_p": 0.1}])
def test_logits_at_the_ends_of_float32(params: dict[str, float]) -> None:
    largest_float = float(np.finfo(np.float32).max)
    logits = np.array([-largest_float, 0.0, largest_float, largest_float, -np.inf], dtype=np.float32)
    assert {drawn(logits, SamplingParams(temperature=1.0, **params), u) for u in (0.0, 0.4, 0.6, 0.99)} == {2, 3}
