"""Random clients: they come in bursts, share the beginnings of prompts, ask for several answers, and leave early."""

from __future__ import annotations

from random import Random

from ..engine.loop import EngineLoop
from ..engine.request import Chunk, Output, Request, SamplingParams

__all__ = ["Traffic"]

_FIRST_TOKEN = 3


class Traffic:
    """Clients of one episode.

    Args:
        draw: decides everything.
        vocab: token ids of prompts are below this.
        longest: tokens of a prompt and its answer together.
        rate: how many come before a step, on the average.
    """

    def __init__(self, draw: Random, *, vocab: int, longest: int, rate: float) -> None:
        self._draw = draw
        self._longest = longest
        self._rate = rate
        self._families = [[draw.randrange(_FIRST_TOKEN, vocab) for _ in range(longest)] for _ in range(4)]
        self._vocab = vocab
        self._live: dict[str, int] = {}
        """Unfinished answers of each live request."""
        self._heard: set[str] = set()
        """Who has got a token."""
        self._number = 0

    def come_and_go(self, loop: EngineLoop) -> None:
        """What happens between two steps."""
        arrivals = int(self._rate + self._draw.random())
        for _ in range(arrivals):
            self._come(loop)
        if self._live and self._draw.random() < self._rate / 8:
            loop.cancel(self._draw.choice(list(self._live)))

    def take(self, outputs: list[Output]) -> None:
        """What came out of a step."""
        for output in outputs:
            self._heard.add(output.request_id)
            if isinstance(output, Chunk) and output.finish_reason is None:
                continue
            left = self._live.get(output.request_id, 0) - 1
            if isinstance(output, Chunk) and left > 0:
                self._live[output.request_id] = left
            else:
                self._live.pop(output.request_id, None)

    def leave_the_line(self, loop: EngineLoop) -> None:
        """Whoever has not got a token yet goes away."""
        for name in [name for name in self._live if name not in self._heard]:
            loop.cancel(name)

    def _come(self, loop: EngineLoop) -> None:
        draw = self._draw
        length = draw.randint(1, self._longest * 3 // 4)
        shared = draw.randint(0, length) if draw.random() < 0.5 else 0
        prompt = draw.choice(self._families)[:shared]
        prompt += [draw.randrange(_FIRST_TOKEN, self._vocab) for _ in range(length - shared)]
        answers = draw.choice((1, 1, 1, 1, 2))
        sampling = SamplingParams(max_tokens=draw.randint(1, max(self._longest // 6, 1)), ignore_eos=True, n=answers)
        name = f"r{self._number}"
        self._number += 1
        self._live[name] = answers
        loop.submit(
            Request(
                request_id=name,
                prompt_ids=prompt,
                sampling=sampling,
                cache_salt=draw.choice(("", "", "a")),
                priority=draw.choice((0, 0, 0, 1)),
                deadline_s=draw.choice((None, None, None, 50.0)),
            )
        )
