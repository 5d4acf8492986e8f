"""Response bodies and event streams, for both endpoints."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import ApiError
from .triton_client import Piece

__all__ = ["Answer", "event_stream"]

Kind = Literal["completion", "chat"]
_PREFIX = {"completion": "cmpl", "chat": "chatcmpl"}
_WHOLE = {"completion": "text_completion", "chat": "chat.completion"}
_CHUNK = {"completion": "text_completion", "chat": "chat.completion.chunk"}
DONE = "data: [DONE]\n\n"


@dataclass(frozen=True)
class Answer:
    """The identity of one answer, which all its bodies carry."""

    kind: Kind
    model: str
    created: int = field(default_factory=lambda: int(time.time()))
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def whole(self, text: str, last: Piece) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        choice: dict[str, Any] = {"index": 0, "finish_reason": last.finish_reason, "logprobs": None}
        choice |= {"text": text} if self.kind == "completion" else {"message": {"role": "assistant", "content": text}}
        return self._body(_WHOLE[self.kind], [choice]) | {"usage": usage(last)}

    def first_chunk(self) -> dict[str, Any] | None:
        """What a chat stream opens with: the role. Completions open with text."""
        return self._chunk({"delta": {"role": "assistant", "content": ""}}, None) if self.kind == "chat" else None

    def chunk(self, piece: Piece) -> dict[str, Any]:
        """One streamed piece."""
        if self.kind == "completion":
            return self._chunk({"text": piece.text}, piece.finish_reason)
        return self._chunk({"delta": {"content": piece.text} if piece.text else {}}, piece.finish_reason)

    def usage_chunk(self, last: Piece) -> dict[str, Any]:
        """What a stream ends with when the client asked for usage."""
        return self._body(_CHUNK[self.kind], []) | {"usage": usage(last)}

    def _chunk(self, content: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
        choice = {"index": 0, "finish_reason": finish_reason, "logprobs": None, **content}
        return self._body(_CHUNK[self.kind], [choice])

    def _body(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        head = {"id": f"{_PREFIX[self.kind]}-{self.token}", "object": kind, "created": self.created, "model": self.model}
        return head | {"choices": choices}


def usage(last: Piece) -> dict[str, int]:
    """Token counts of an answer, from its last piece."""
    return {
        "prompt_tokens": last.prompt_tokens,
        "completion_tokens": last.completion_tokens,
        "total_tokens": last.prompt_tokens + last.completion_tokens,
    }


async def event_stream(answer: Answer, first: Piece, rest: AsyncIterator[Piece], *, include_usage: bool) -> AsyncIterator[str]:
    """Server-sent events of an answer whose first piece has arrived.

    The status line has gone out when a later piece fails, so the error is an event of its own, and
    the stream then ends without ``[DONE]``.
    """
    opening = answer.first_chunk()
    if opening is not None:
        yield _event(opening)
    yield _event(answer.chunk(first))
    last = first
    try:
        async for last in rest:
            yield _event(answer.chunk(last))
    except ApiError as error:
        yield _event(error.body)
        return
    if include_usage:
        yield _event(answer.usage_chunk(last))
    yield DONE


def _event(body: dict[str, Any]) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"
