"""What the front asks for answers, and how: the contract that the client to Triton fulfils."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Protocol

from ..engine.request import SamplingParams, TokenLogprob

__all__ = ["GenerationOptions", "Generator", "Piece"]


@dataclass(frozen=True)
class GenerationOptions:
    """How to answer a prompt. ``request_id`` begins the id that Triton logs; it need not be unique.

    The others are as in :class:`roundhouse.serve.engine.request.Request`.
    """

    sampling: SamplingParams = field(default_factory=SamplingParams)
    request_id: str = ""
    cache_salt: str = ""
    priority: int = 0
    deadline_s: float | None = None
    session_affinity: str = ""
    """Passed on as a header of the call, for a router that sends the requests of one session to one place."""


@dataclass(frozen=True)
class Piece:
    """New output of one answer; ``finish_reason`` and ``stop_reason`` are set on the answer's last piece only.

    When an answer is not streamed, there is one piece for it, and it is the last one.
    """

    index: int
    """Which of the request's answers, from 0 on."""
    text: str
    finish_reason: str | None
    stop_reason: str | None
    """The stop string or, as text, the token that ended the answer; None when neither did."""
    prompt_tokens: int
    cached_tokens: int
    """Tokens of the prompt that were not computed, because they were cached."""
    completion_tokens: int
    """Of this answer so far."""
    token_ids: tuple[int, ...]
    """New ones."""
    logprobs: tuple[TokenLogprob, ...] | None
    """One for each of ``token_ids`` when the sampling parameters ask for them, else None."""


class Generator(Protocol):
    """What the front asks for answers."""

    async def problem(self) -> str | None:
        """Why requests should not be sent now, or None when they may."""
        ...

    async def pages(self) -> bytes:
        """Who holds each KV page now: a :class:`roundhouse.serve.page_map.PageMap` as JSON.

        Raises:
            ApiError: the engine does not say.
        """
        ...

    def generate(self, prompt: str | list[int], options: GenerationOptions, *, streaming: bool) -> AsyncGenerator[Piece, None]:
        """Yield all answers piece by piece, or each in one piece. Closing the generator cancels the request.

        Raises:
            ApiError: the request is wrong, or an answer cannot be given.
        """
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...
