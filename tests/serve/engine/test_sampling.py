"""Choosing tokens: filters, seeds, and independence from the rest of the batch."""

from __future__ import annotations

import numpy as np
import pytest

from roundhouse.serve.engine.request import SamplingParams
from roundhouse.serve.engine.sampling import Sampler, choose_tokens


def logits_of(*probabilities: float) -> np.ndarray:
    return np.log(np.array(probabilities, dtype=np.float32))


def draws(logits: np.ndarray, count: int, **params: object) -> list[int]:
    sampler = Sampler(SamplingParams(**{"temperature": 1.0, "seed": 1, **params}))
    return [sampler.draw(logits) for _ in range(count)]


def test_greedy_rows_take_the_largest_logit() -> None:
    logits = np.random.default_rng(0).normal(size=(5, 100)).astype(np.float32)
    assert choose_tokens(logits, [Sampler(SamplingParams())] * 5) == logits.argmax(axis=1).tolist()


def test_no_rows() -> None:
    assert choose_tokens(np.zeros((0, 9), dtype=np.float32), []) == []


def test_draws_follow_the_distribution() -> None:
    counts = np.bincount(draws(logits_of(0.5, 0.3, 0.2), 4000), minlength=3) / 4000
    assert np.abs(counts - [0.5, 0.3, 0.2]).max() < 0.03


def test_temperature_sharpens() -> None:
    counts = np.bincount(draws(logits_of(0.6, 0.4), 4000, temperature=0.5), minlength=2) / 4000
    assert abs(counts[0] - 0.36 / 0.52) < 0.03


@pytest.mark.parametrize("temperature", [1e-300, 1e-6, 1e30])
def test_extreme_temperatures_stay_finite(temperature: float) -> None:
    drawn = set(draws(logits_of(0.2, 0.5, 0.3), 50, temperature=temperature))
    assert drawn == ({1} if temperature < 1 else {0, 1, 2})


def test_top_k_keeps_the_k_most_likely() -> None:
    assert set(draws(logits_of(0.1, 0.4, 0.2, 0.3), 400, top_k=2)) == {1, 3}
    assert set(draws(logits_of(0.1, 0.4, 0.2, 0.3), 50, top_k=1)) == {1}
    assert set(draws(logits_of(0.1, 0.4, 0.2, 0.3), 400, top_k=9)) == {0, 1, 2, 3}


def test_top_p_keeps_the_smallest_set_that_reaches_p() -> None:
    assert set(draws(logits_of(0.1, 0.45, 0.15, 0.3), 400, top_p=0.7)) == {1, 3}
    assert set(draws(logits_of(0.1, 0.45, 0.15, 0.3), 400, top_p=0.8)) == {1, 2, 3}
    assert set(draws(logits_of(0.1, 0.45, 0.15, 0.3), 50, top_p=1e-9)) == {1}


def test_top_p_counts_within_what_top_k_left() -> None:
    # Of 0.4 and 0.3 alone, the first holds 57%: more than half, so it is enough.
    assert set(draws(logits_of(0.1, 0.4, 0.2, 0.3), 200, top_k=2, top_p=0.5)) == {1}


@pytest.mark.parametrize("params", [{}, {"top_k": 20}, {"top_p": 0.8}, {"top_k": 50, "top_p": 0.9}])
def test_a_seed_gives_the_same_draws_whatever_the_batch(params: dict[str, object]) -> None:
    random = np.random.default_rng(3)
    steps = [random.normal(size=(4, 200)).astype(np.float32) for _ in range(30)]
    seeded = SamplingParams(**{"temperature": 0.9, "seed": 42, **params})
    alone = Sampler(seeded)
    expected = [choose_tokens(step[:1], [alone])[0] for step in steps]
    neighbours = [SamplingParams(temperature=1.3), SamplingParams(), seeded, SamplingParams(temperature=2, seed=5)]
    samplers = [Sampler(each) for each in neighbours]
    assert [choose_tokens(step[[1, 2, 0, 3]], samplers)[2] for step in steps] == expected


def test_every_seed_has_its_own_draws() -> None:
    logits = np.zeros(1000, dtype=np.float32)
    assert len({tuple(draws(logits, 5, seed=seed)) for seed in (0, 1, 2**63, 2**64 - 1)}) == 4


def test_without_a_seed_draws_differ() -> None:
    logits = np.zeros(1000, dtype=np.float32)
    assert draws(logits, 8, seed=None) != draws(logits, 8, seed=None)


def test_a_row_that_is_not_finite_has_no_token_and_harms_no_neighbour() -> None:
    logits = np.zeros((4, 3), dtype=np.float32)
    logits[0, 1] = np.nan
    logits[1] = -np.inf
    logits[2, 2] = 1
    logits[3, 0] = np.inf
    greedy = [Sampler(SamplingParams())] * 4
    assert choose_tokens(logits, greedy) == [None, None, 2, None]
    assert choose_tokens(logits, [Sampler(SamplingParams(temperature=1))] * 2 + greedy[:2])[:2] == [None, None]
