"""A sequence: one answer of a live request, its tokens, and the pages its keys and values lie in."""

from __future__ import annotations

from dataclasses import dataclass, field

from .detokenize import TextStream
from .pool import Grant
from .prefix_cache import page_key
from .request import SamplingParams
from .sampling_state import SamplingState

__all__ = ["Sequence"]


@dataclass(eq=False)
class Sequence:
    """Mutable state of one answer. Only the engine loop and the scheduler change it.

    ``tokens`` is the prompt followed by everything generated; ``computed`` of them have their keys
    and values in pages. ``grants`` are the held pages in order of position.
    """

    request_id: str
    tokens: list[int]
    prompt_tokens: int
    max_new: int
    """Tokens to generate at most: ``max_tokens``, capped by the model's length and by the pool. At least 1 in the line."""
    sampling: SamplingParams
    sampler: SamplingState
    text: TextStream
    index: int = 0
    """Which of its request's answers it is."""
    root: bytes = b""
    """The prefix key before its first page: only sequences with the same one share pages."""
    priority: int = 0
    arrival: int = 0
    """Its place in the order of arrival; all answers of a request have the same."""
    leader: Sequence | None = None
    """The first answer of the same request: this one waits for its prompt's pages, to share them."""
    computed: int = 0
    cached_tokens: int = 0
    """Tokens of the prompt that were there already when it was first admitted."""
    was_admitted: bool = False
    grants: list[Grant] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    """Prefix keys of its full pages, as far as they were needed."""

    @property
    def order(self) -> tuple[int, int, int]:
        """Smaller runs first."""
        return (self.priority, self.arrival, self.index)

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

    @property
    def may_start(self) -> bool:
        """Whether nothing is being made that it needs: the prompt's pages by the first answer of its request, or its guide."""
        leader = self.leader
        computing = leader is not None and leader.was_admitted and leader.computed < leader.prompt_tokens
        return not computing and self.sampler.ready()

    def page_keys(self, pages: int, page_tokens: int) -> list[bytes]:
        """Prefix keys of the first ``pages`` pages, which are full."""
        for page in range(len(self.keys), pages):
            parent = self.keys[-1] if self.keys else self.root
            self.keys.append(page_key(parent, self.tokens[page * page_tokens : (page + 1) * page_tokens]))
        return self.keys[:pages]
