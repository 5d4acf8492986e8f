"""What an OpenAI-compatible endpoint's answers say of texts and calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roundhouse.errors import ServeError

from .echo import ends_of
from .scorer import CallAnswer, Continuation, Likelihood, TextToken

__all__ = ["answer_of", "likelihood_of", "read_tokens"]

_ROUNDED = 1e-3
"""How much a logarithm of a probability may be above zero by rounding."""


def read_tokens(answer: Mapping[str, Any], text: str) -> list[TextToken]:
    """The tokens of a text that ``/completions`` echoed with ``logprobs``, without what was generated after it.

    A token that begins the document comes first where the server puts one there; then the text's first token is as likely
    as any other, as with an engine.

    Raises:
        ServeError: the answer does not have them, or they are not the text's.
    """
    try:
        found = answer["choices"][0]["logprobs"]
        words = [str(word) for word in found["tokens"]]
        logprobs, tops = list(found["token_logprobs"]), list(found["top_logprobs"] or [None] * len(words))
    except (KeyError, IndexError, TypeError, ValueError):
        raise ServeError("the endpoint's answer has no log-probabilities of the prompt") from None
    if not len(words) == len(logprobs) == len(tops):
        raise ServeError("the endpoint's answer has no log-probabilities of the whole prompt")
    echoed = ends_of(words, text)
    inside = echoed.before + len(echoed.ends)
    if inside < 2 or not all(_is_logprob(found) for found in logprobs[1:inside]):
        raise ServeError("the endpoint's answer has no log-probabilities of the whole prompt")
    ends = [*[0] * echoed.before, *echoed.ends]
    return [
        TextToken(ends[0], None, {}),
        *(TextToken(ends[place], float(logprobs[place]), _sorted(tops[place])) for place in range(1, inside)),
    ]


def likelihood_of(answer: Mapping[str, Any], continuation: Continuation) -> Likelihood:
    """The likelihood of a continuation, from an echo of it behind its context.

    Raises:
        ServeError: the answer does not have it.
    """
    start = len(continuation.context.rstrip())
    tokens = read_tokens(answer, continuation.context + continuation.text)
    wanted = [token for token in tokens if token.end > start and token.logprob is not None]
    if not wanted:
        raise ServeError("the endpoint's answer has no token of the continuation")
    logprob = sum(token.logprob for token in wanted if token.logprob is not None)
    greedy = all(token.logprob >= max(token.top.values(), default=0.0) for token in wanted if token.logprob is not None)
    return Likelihood(logprob, len(wanted), greedy)


def answer_of(answer: Mapping[str, Any]) -> CallAnswer:
    """Text and calls of a chat answer.

    Raises:
        ServeError: it has none of both.
    """
    try:
        message = answer["choices"][0]["message"]
        calls = [each["function"] for each in message.get("tool_calls") or ()]
        return CallAnswer(
            str(message.get("content") or ""), tuple((str(each["name"]), str(each.get("arguments") or "")) for each in calls)
        )
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ServeError("the endpoint's answer has no message") from None


def _is_logprob(found: object) -> bool:
    return isinstance(found, int | float) and found <= _ROUNDED


def _sorted(top: Any) -> dict[int | str, float]:
    """The likeliest first; empty where the server names none, or in another form."""
    if not isinstance(top, Mapping) or not all(map(_is_logprob, top.values())):
        return {}
    return dict(sorted(top.items(), key=lambda each: -each[1]))
