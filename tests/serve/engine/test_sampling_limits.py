"""Sampling parameters that cannot be followed: each is told by its name, with what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from roundhouse.errors import RequestError
from roundhouse.serve.engine.request import Guide, SamplingParams
from roundhouse.serve.engine.sampling_limits import check_sampling

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_tokens": -1}, "max_tokens is -1; it must be 0 or more"),
        ({"min_tokens": -1}, "min_tokens is -1; it must be in 0..16 (max_tokens)"),
        ({"min_tokens": 9, "max_tokens": 8}, "min_tokens is 9; it must be in 0..8 (max_tokens)"),
        ({"temperature": -0.1}, "temperature is -0.1; it must be a finite number, 0 (greedy) or more"),
        ({"temperature": NAN}, "temperature is nan"),
        ({"temperature": INF}, "temperature is inf"),
        ({"top_p": 0.0}, "top_p is 0.0; it must be above 0 and at most 1"),
        ({"top_p": 1.1}, "top_p is 1.1"),
        ({"top_p": NAN}, "top_p is nan"),
        ({"top_k": -1}, "top_k is -1; it must be 0 (every token) or more"),
        ({"min_p": -0.1}, "min_p is -0.1; it must be in 0..1"),
        ({"min_p": NAN}, "min_p is nan"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0.0; it must be a finite number above 0"),
        ({"repetition_penalty": INF}, "repetition_penalty is inf"),
        ({"repetition_penalty": NAN}, "repetition_penalty is nan"),
        ({"presence_penalty": 2.1}, "presence_penalty is 2.1; it must be in -2..2"),
        ({"presence_penalty": NAN}, "presence_penalty is nan"),
        ({"frequency_penalty": -3.0}, "frequency_penalty is -3.0; it must be in -2..2"),
        ({"logit_bias": {5: NAN}}, "logit_bias of token 5 is nan; it must be a finite number"),
        ({"logit_bias": {5: -INF}}, "logit_bias of token 5 is -inf"),
        ({"logit_bias": {512: 1.0}}, "logit_bias: token id 512 does not exist; it must be in 0..511"),
        ({"logit_bias": {-1: 1.0}}, "logit_bias: token id -1 does not exist"),
        ({"logit_bias": dict.fromkeys(range(1025), 0.0)}, "logit_bias has 1,025 tokens; at most 1,024 are allowed"),
        ({"stop_token_ids": (1, 600)}, "stop_token_ids: token id 600 does not exist; it must be in 0..511"),
        ({"stop_token_ids": (1,) * 257}, "stop_token_ids has 257 tokens; at most 256 are allowed"),
        ({"stop": ("a", "")}, "stop: a stop string is empty"),
        ({"stop": ("a",) * 33}, "stop has 33 strings; at most 32 are allowed"),
        ({"stop": ("b", "a" * 257)}, "stop: a string has 257 characters; at most 256 are allowed"),
        ({"seed": -1}, "seed is -1; it must be in 0..2**64 - 1"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
        ({"logprobs": 21}, "logprobs is 21; it must be in 0..20"),
        ({"logprobs": -1}, "logprobs is -1"),
        ({"n": 0}, "n is 0; it must be in 1..4, the answers that can be drawn at once (max_batch_size)"),
        ({"n": 5}, "n is 5; it must be in 1..4, the answers that can be drawn at once (max_batch_size)"),
        ({"guide": Guide(kind="json_schema", text="{")}, "the JSON schema cannot be followed: it is not valid JSON"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(params: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        check_sampling(SamplingParams(**params), vocab=512, max_answers=4)
    assert caught.value.code == "invalid_request"
    assert message in caught.value.message


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"max_tokens": 0},
        {"max_tokens": 10**9, "min_tokens": 10**9},
        {"temperature": 1e300, "top_p": 1e-12, "top_k": 10**9, "min_p": 1.0},
        {"temperature": -0.0},
        {"repetition_penalty": 1e-9, "presence_penalty": -2.0, "frequency_penalty": 2.0},
        {"logit_bias": {0: -1e308, 511: 1e308}, "stop_token_ids": (0, 511)},
        {"stop": ("a" * 256,) * 32, "seed": 2**64 - 1, "logprobs": 20, "n": 4},
        {"logprobs": 0, "seed": 0},
        {"guide": Guide(kind="json_object")},
    ],
)
def test_what_lies_at_the_edge_is_allowed(params: dict[str, Any]) -> None:
    check_sampling(SamplingParams(**params), vocab=512, max_answers=4)


def test_token_ids_are_only_known_to_be_wrong_when_the_model_is_known() -> None:
    check_sampling(SamplingParams(logit_bias={10**6: 1.0}, stop_token_ids=(10**6,)))
    with pytest.raises(RequestError, match="must be 0 or more"):
        check_sampling(SamplingParams(logit_bias={-1: 1.0}))
