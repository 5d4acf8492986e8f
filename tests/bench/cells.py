"""What is measured: one system at one concurrency in one repeat, and how busy others kept the machine meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roundhouse.serve.benchmark.points import NOISY_CORES
from roundhouse.serve.engine.request import Chunk

__all__ = ["Cell", "DecodeWindow", "Run"]


@dataclass(frozen=True)
class Run:
    """A batch of requests that a system has served, all of them at once."""

    output_tokens: int
    """Of all requests together."""
    seconds: float
    """From the first request's start to the last one's end: prompts are part of it."""
    decode_tokens_per_s: float | None = None
    """While every request decoded; None where that is not known."""


@dataclass(frozen=True)
class Cell:
    """A run and its circumstances."""

    system: str
    concurrency: int
    repeat: int
    run: Run
    others: float
    """Cores that other processes kept busy."""

    @property
    def tokens_per_s(self) -> float:
        """Output tokens a second, prompts included."""
        return self.run.output_tokens / self.run.seconds

    @property
    def noisy(self) -> bool:
        """Whether others took so much that this may not be the system's speed."""
        return self.others > NOISY_CORES


class DecodeWindow:
    """The part of a run in which every request decodes: from where each has a token to where the first one ends.

    Args:
        requests: how many there are.
    """

    def __init__(self, requests: int) -> None:
        self._requests = requests
        self._started: set[str] = set()
        self._began: float | None = None
        self._over = False
        self._tokens = 0
        self._seconds = 0.0

    @property
    def open(self) -> bool:
        """Whether every request has a token, and none has ended."""
        return self._began is not None and not self._over

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens a second within it; None when it was never open for a step."""
        return self._tokens / self._seconds if self._seconds else None

    def note(self, chunks: Iterable[Chunk], now: float) -> None:
        """A step has ended at ``now`` and gave these."""
        chunks = list(chunks)
        if self._began is not None and not self._over:
            self._tokens += sum(len(chunk.token_ids) for chunk in chunks)
            self._seconds = now - self._began
        self._started.update(chunk.request_id for chunk in chunks)
        self._over = self._over or any(chunk.finish_reason is not None for chunk in chunks)
        if self._began is None and len(self._started) == self._requests:
            self._began = now
