"""A request, what comes back for it, and why it ended. These are also the wire messages."""

from __future__ import annotations

from typing import Literal

import msgspec

from roundhouse.errors import RequestCode

__all__ = ["Chunk", "Failure", "FinishReason", "Output", "Request", "SamplingParams"]

FinishReason = Literal["stop", "length", "cancelled"]


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are drawn and when a request ends.

    ``temperature`` 0 is greedy. ``top_k`` 0 and ``top_p`` 1 keep every token. ``seed`` is in
    0..2**64 − 1; None draws a fresh one. ``stop`` strings end the text before them. ``ignore_eos`` goes
    on past end-of-sequence tokens.
    """

    max_tokens: int = 16
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False


class Request(msgspec.Struct, frozen=True, kw_only=True, tag="request"):
    """One prompt, as text (tokenized with special tokens) or as token ids (taken as they are).

    ``request_id`` is unique among live requests of an engine process.
    """

    request_id: str
    prompt: str | None = None
    prompt_ids: list[int] | None = None
    sampling: SamplingParams = SamplingParams()


class Chunk(msgspec.Struct, frozen=True, kw_only=True, tag="chunk"):
    """New output of one request. ``text`` may be empty while a character or a stop string is incomplete.

    ``finish_reason`` is None until the last chunk. Joined texts are the whole output.
    """

    request_id: str
    text: str
    token_ids: list[int]
    prompt_tokens: int
    completion_tokens: int
    """Tokens so far, this chunk's included."""
    finish_reason: FinishReason | None = None
    stop_reason: str | None = None
    """The stop string or, as text, the end-of-sequence token id that ended the request."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """The end of one request that could not be served or finished."""

    request_id: str
    code: RequestCode
    message: str


Output = Chunk | Failure
