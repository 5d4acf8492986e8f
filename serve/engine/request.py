"""A request, what comes back for it, and why it ended. These are also the wire messages."""

from __future__ import annotations

from typing import Literal

import msgspec

from roundhouse.errors import RequestCode

__all__ = ["Chunk", "Failure", "FinishReason", "Guide", "Output", "Request", "SamplingParams", "TokenLogprob"]

FinishReason = Literal["stop", "length", "cancelled"]


class Guide(msgspec.Struct, frozen=True, kw_only=True):
    """What the text must look like: it is built token by token so that it always can become that."""

    kind: Literal["json_schema", "json_object", "regex"]
    text: str = ""
    """The schema as JSON, or the regular expression; empty for ``json_object``."""


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are drawn and when a request ends.

    ``temperature`` 0 is greedy. ``top_k`` 0, ``top_p`` 1 and ``min_p`` 0 keep every token; ``min_p`` drops tokens less
    likely than that part of the likeliest. ``repetition_penalty`` divides (multiplies, where negative) the logits of
    tokens of prompt and answer; ``presence_penalty`` is taken from those of the answer once, ``frequency_penalty`` once
    for each time they stand there. ``logit_bias`` is added, by token id. ``seed`` is in 0..2**64 − 1; None draws a fresh
    one. ``stop`` strings end the text before them, ``stop_token_ids`` end it like an end-of-sequence token.
    ``min_tokens`` come before either may end it. ``ignore_eos`` goes on past end-of-sequence tokens. ``logprobs`` asks
    for the log-probability of each token and of that many likeliest ones beside it. ``n`` answers are drawn.
    """

    max_tokens: int = 16
    min_tokens: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: dict[int, float] = {}
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logprobs: int | None = None
    n: int = 1
    guide: Guide | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True, tag="request"):
    """One prompt, as text (tokenized with special tokens) or as token ids (taken as they are).

    ``request_id`` is unique among live requests of an engine process. Prompts share pages only with prompts of the same
    ``cache_salt``. Smaller ``priority`` runs first; equal ones in the order in which they came. A request that has not
    ended ``deadline_s`` seconds after it came is ended with an error.
    """

    request_id: str
    prompt: str | None = None
    prompt_ids: list[int] | None = None
    sampling: SamplingParams = SamplingParams()
    cache_salt: str = ""
    priority: int = 0
    deadline_s: float | None = None


class TokenLogprob(msgspec.Struct, frozen=True):
    """The natural log-probability of one token before any sampling parameter changed it, and of the likeliest ones."""

    token_id: int
    logprob: float
    top: list[tuple[int, float]]
    """(token id, log-probability), likeliest first; as many as were asked for."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True, tag="chunk"):
    """New output of one answer. ``text`` may be empty while a character or a stop string is incomplete.

    ``finish_reason`` is None until the answer's last chunk. Joined texts are the whole answer. A request has ended when
    all of its ``n`` answers have.
    """

    request_id: str
    index: int = 0
    """Which of the request's ``n`` answers, from 0 on."""
    text: str
    token_ids: list[int]
    prompt_tokens: int
    cached_tokens: int = 0
    """Tokens of the prompt that were not computed, because their pages were there."""
    completion_tokens: int
    """Tokens of this answer so far, this chunk's included."""
    logprobs: list[TokenLogprob] | None = None
    """One for each of ``token_ids``, when asked for."""
    finish_reason: FinishReason | None = None
    stop_reason: str | None = None
    """The stop string or, as text, the token id that ended the answer."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """The end of one request, with all of its answers, that could not be served or finished."""

    request_id: str
    code: RequestCode
    message: str


Output = Chunk | Failure
