"""Whether sampling parameters can be followed: every field's range, told by its name."""

from __future__ import annotations

import math
from collections.abc import Iterable

from roundhouse.errors import RequestError

from .guides import check_guide
from .request import SamplingParams

__all__ = ["MOST_ANSWERS", "check_sampling"]

MOST_ANSWERS = 128
_MOST_LOGPROBS = 20
_MOST_BIASED = 1024
_MOST_STOPS = 32
_LONGEST_STOP = 256
_MOST_STOP_TOKENS = 256


def check_sampling(params: SamplingParams, *, vocab: int | None = None, max_answers: int = MOST_ANSWERS) -> None:
    """See that the parameters can be followed.

    Args:
        params: as they came from the client.
        vocab: token ids are below this, when the model is known.
        max_answers: the largest ``n``.

    Raises:
        RequestError: ``invalid_request``, naming the field, its value and what is allowed.
    """
    _check_lengths(params)
    _check_filters(params)
    _check_penalties(params)
    _check_ends(params)
    _check_token_ids("stop_token_ids", params.stop_token_ids, vocab)
    _check_token_ids("logit_bias", params.logit_bias, vocab)
    if not 1 <= params.n <= max_answers:
        raise _invalid("n", params.n, f"in 1..{max_answers}, the answers that can be drawn at once (max_batch_size)")
    if params.logprobs is not None:
        _range("logprobs", params.logprobs, 0, _MOST_LOGPROBS)
    if params.seed is not None and not 0 <= params.seed < 2**64:
        raise _invalid("seed", params.seed, "in 0..2**64 - 1")
    if params.guide is not None:
        check_guide(params.guide)


def _check_lengths(params: SamplingParams) -> None:
    if params.max_tokens < 0:
        raise _invalid("max_tokens", params.max_tokens, "0 or more")
    if not 0 <= params.min_tokens <= params.max_tokens:
        raise _invalid("min_tokens", params.min_tokens, f"in 0..{params.max_tokens} (max_tokens)")


def _check_filters(params: SamplingParams) -> None:
    if not (math.isfinite(params.temperature) and params.temperature >= 0):
        raise _invalid("temperature", params.temperature, "a finite number, 0 (greedy) or more")
    if not 0 < params.top_p <= 1:
        raise _invalid("top_p", params.top_p, "above 0 and at most 1")
    if params.top_k < 0:
        raise _invalid("top_k", params.top_k, "0 (every token) or more")
    if not 0 <= params.min_p <= 1:
        raise _invalid("min_p", params.min_p, "in 0..1")


def _check_penalties(params: SamplingParams) -> None:
    if not (math.isfinite(params.repetition_penalty) and params.repetition_penalty > 0):
        raise _invalid("repetition_penalty", params.repetition_penalty, "a finite number above 0; 1 changes nothing")
    _range("presence_penalty", params.presence_penalty, -2, 2)
    _range("frequency_penalty", params.frequency_penalty, -2, 2)
    if len(params.logit_bias) > _MOST_BIASED:
        raise RequestError(
            "invalid_request", f"logit_bias has {len(params.logit_bias):,} tokens; at most {_MOST_BIASED:,} are allowed"
        )
    for token, bias in params.logit_bias.items():
        if not math.isfinite(bias):
            raise _invalid(f"logit_bias of token {token}", bias, "a finite number")


def _check_ends(params: SamplingParams) -> None:
    if "" in params.stop:
        raise RequestError("invalid_request", "stop: a stop string is empty")
    if len(params.stop) > _MOST_STOPS:
        raise RequestError("invalid_request", f"stop has {len(params.stop):,} strings; at most {_MOST_STOPS} are allowed")
    if longest := max((len(stop) for stop in params.stop if len(stop) > _LONGEST_STOP), default=0):
        raise RequestError("invalid_request", f"stop: a string has {longest:,} characters; at most {_LONGEST_STOP} are allowed")
    if len(params.stop_token_ids) > _MOST_STOP_TOKENS:
        raise RequestError(
            "invalid_request",
            f"stop_token_ids has {len(params.stop_token_ids):,} tokens; at most {_MOST_STOP_TOKENS} are allowed",
        )


def _check_token_ids(field: str, ids: Iterable[int], vocab: int | None) -> None:
    for token in ids:
        if token < 0 or (vocab is not None and token >= vocab):
            allowed = "0 or more" if vocab is None else f"in 0..{vocab - 1}"
            raise RequestError("invalid_request", f"{field}: token id {token} does not exist; it must be {allowed}")


def _range(field: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise _invalid(field, value, f"in {least}..{most}")


def _invalid(field: str, value: object, allowed: str) -> RequestError:
    return RequestError("invalid_request", f"{field} is {value}; it must be {allowed}")
