"""The contract of whoever answers an evaluation's questions: an engine in this process, or an endpoint anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

__all__ = ["CallAnswer", "CallQuestion", "Continuation", "Likelihood", "Need", "Prompt", "Scorer", "TextToken"]

Need = Literal["completions", "likelihoods", "calls"]
"""What a task may ask for: text that goes on, how likely a text is, answers that call tools."""


@dataclass(frozen=True)
class Prompt:
    """A text to go on with; greedy unless told otherwise."""

    text: str
    max_tokens: int
    stop: tuple[str, ...] = ()
    """The answer ends before any of these."""
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None
    cut: bool = False
    """Whether the beginning of a prompt that is too long is left out; otherwise it is an error."""


@dataclass(frozen=True)
class Continuation:
    """How likely is ``text`` after ``context``? A context that is empty stands for the beginning of a document."""

    context: str
    text: str


@dataclass(frozen=True)
class Likelihood:
    """What a model thinks of a text."""

    logprob: float
    """Natural logarithm, of all its tokens together."""
    tokens: int
    is_greedy: bool
    """Whether each of its tokens is the likeliest one."""


@dataclass(frozen=True)
class TextToken:
    """A token of a text that was read, and what the model expected in its place."""

    end: int
    """The character of the text before which the token ends."""
    logprob: float | None
    """Natural logarithm; None for the first, which nothing comes before."""
    top: Mapping[int | str, float]
    """Log-probabilities of the likeliest tokens in this place, the likeliest first; empty where ``logprob`` is None."""


@dataclass(frozen=True)
class CallQuestion:
    """A request that a tool should be called for, with the tools as OpenAI's API has them."""

    request: str
    tools: tuple[Mapping[str, Any], ...]
    max_tokens: int


@dataclass(frozen=True)
class CallAnswer:
    """What came of it."""

    text: str
    calls: tuple[tuple[str, str], ...]
    """Name and arguments of each call; the arguments as the model wrote them, JSON or not."""


class Scorer(Protocol):
    """Answers questions, many at once; one method at a time. Answers come as they are ready, each with its question's place.

    Every method raises :class:`~roundhouse.errors.BenchmarkStoppedError` when the evaluation is asked to end, and
    :class:`~roundhouse.errors.ServeError` when an answer cannot be had.
    """

    room: int | None
    """Tokens of a request at most, prompt and answer; None where that is not known."""

    def lacks(self, need: Need) -> str | None:
        """Why something cannot be asked for here, in a sentence; None when it can."""
        ...

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, str]]:
        """Go on with each text."""
        ...

    def likelihoods(self, continuations: Sequence[Continuation]) -> Iterator[tuple[int, Likelihood]]:
        """Say how likely each text is. What is too long loses its beginning."""
        ...

    def read(self, texts: Sequence[str], *, top: int) -> Iterator[tuple[int, list[TextToken]]]:
        """Go through each text token by token.

        Args:
            texts: what is read, each from its beginning.
            top: likeliest tokens to name in each place.
        """
        ...

    def call(self, questions: Sequence[CallQuestion]) -> Iterator[tuple[int, CallAnswer]]:
        """Let each request be answered, by a call of a tool or not; nothing forces one."""
        ...

    def count_tokens(self, text: str) -> int | None:
        """How many tokens a text has; None where that is not known."""
        ...

    def close(self) -> None:
        """Free what it takes. May be called twice."""
        ...
