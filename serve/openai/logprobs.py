"""Log-probabilities in OpenAI's two forms: of chat, and the older one of completions."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

from ..engine.request import TokenLogprob
from .token_text import TokenText

__all__ = ["CompletionLogprobs", "chat_logprobs", "joined_logprobs"]

_LEAST = -9999.0
"""What OpenAI shows for a probability of nothing: JSON has no infinity."""


def chat_logprobs(tokens: TokenText, logprobs: Sequence[TokenLogprob] | None) -> dict[str, Any] | None:
    """What a chat choice shows for new tokens; None when they were not asked for.

    Args:
        tokens: what they spell.
        logprobs: one for each.
    """
    if logprobs is None:
        return None
    content = [
        _entry(tokens, each.token_id, each.logprob)
        | {"top_logprobs": [_entry(tokens, token_id, logprob) for token_id, logprob in each.top]}
        for each in logprobs
    ]
    return {"content": content, "refusal": None}


class CompletionLogprobs:
    """The older form, for the tokens of one completion as they come.

    Args:
        tokens: what they spell.
        offset: characters of the choice's text before the first.
    """

    def __init__(self, tokens: TokenText, offset: int) -> None:
        self._tokens = tokens
        self._offset = offset
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, logprobs: Sequence[TokenLogprob] | None) -> dict[str, Any] | None:
        """What the choice shows for new tokens; None when they were not asked for.

        Args:
            logprobs: one for each.
        """
        if logprobs is None:
            return None
        label = self._tokens.label_of
        return {
            "tokens": [label(each.token_id) for each in logprobs],
            "token_logprobs": [max(each.logprob, _LEAST) for each in logprobs],
            "top_logprobs": [{label(token_id): max(logprob, _LEAST) for token_id, logprob in each.top} for each in logprobs],
            "text_offset": [self._advance(each.token_id) for each in logprobs],
        }

    def _advance(self, token_id: int) -> int:
        """Characters before a token."""
        before = self._offset
        self._offset += len(self._decoder.decode(self._tokens.bytes_of(token_id)))
        return before


def joined_logprobs(parts: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Several parts in either form as one; None when there are none."""
    given = [part for part in parts if part is not None]
    if not given:
        return None
    return {
        key: [entry for part in given for entry in part[key]] if isinstance(given[0][key], list) else given[0][key]
        for key in given[0]
    }


def _entry(tokens: TokenText, token_id: int, logprob: float) -> dict[str, Any]:
    return {
        "token": tokens.text_of(token_id),
        "logprob": max(logprob, _LEAST),
        "bytes": list(tokens.bytes_of(token_id)),
    }
