"""A sequence: one live request, its tokens, and the pages its keys and values lie in."""

from __future__ import annotations

from dataclasses import dataclass, field

from .detokenize import TextStream
from .pool import Grant
from .request import SamplingParams
from .sampling import Sampler

__all__ = ["Sequence"]


@dataclass(eq=False)
class Sequence:
    """Mutable state of one request. Only the engine loop and the scheduler change it.

    ``tokens`` is the prompt followed by everything generated; ``computed`` of them have their keys
    and values in pages. ``grants`` are the held pages in order of position.
    """

    request_id: str
    tokens: list[int]
    prompt_tokens: int
    max_new: int
    """Tokens to generate at most: ``max_tokens``, capped by the model's length and by the pool. At least 1 in the line."""
    sampling: SamplingParams
    sampler: Sampler
    text: TextStream
    computed: int = 0
    grants: list[Grant] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        """Tokens that must run before the next one can be sampled."""
        return len(self.tokens) - self.computed

    @property
    def generated(self) -> int:
        """Tokens generated so far."""
        return len(self.tokens) - self.prompt_tokens

    @property
    def cache_tokens(self) -> int:
        """Tokens that will ever be cached: the last generated one never runs."""
        return self.prompt_tokens + self.max_new - 1
