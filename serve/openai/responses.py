"""An answer from its pieces: one body, or a stream of events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from .choices import Choice
from .errors import ApiError
from .triton_client import Piece
from .usage import Usage

__all__ = ["Answer", "AnswerHead", "event_of"]

Kind = Literal["completion", "chat"]
_PREFIX = {"completion": "cmpl", "chat": "chatcmpl"}
_WHOLE = {"completion": "text_completion", "chat": "chat.completion"}
_CHUNK = {"completion": "text_completion", "chat": "chat.completion.chunk"}
_DONE = "data: [DONE]\n\n"


@dataclass(frozen=True)
class AnswerHead:
    """The identity of one answer, which all its bodies carry."""

    kind: Kind
    model: str
    request_id: str
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        """A body of an answer that is not streamed."""
        return self._body(_WHOLE[self.kind], choices)

    def chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        """A body of a stream."""
        return self._body(_CHUNK[self.kind], choices)

    def _body(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        name = f"{_PREFIX[self.kind]}-{self.request_id}"
        return {"id": name, "object": kind, "created": self.created, "model": self.model, "choices": choices}


class Answer:
    """One answer being made.

    Args:
        head: its identity.
        choices: makes the choice of a number, which is ``prompt * n + answer``.
        n: answers to each prompt.
        include_usage: whether a stream says how many tokens there were.
    """

    def __init__(self, head: AnswerHead, choices: Callable[[int], Choice], *, n: int, include_usage: bool) -> None:
        self._head = head
        self._make = choices
        self._n = n
        self._include_usage = include_usage
        self._choices: dict[int, Choice] = {}
        self._usage = Usage()

    async def whole(self, pieces: AsyncIterator[tuple[int, Piece]]) -> dict[str, Any]:
        """The body of an answer that is not streamed.

        Raises:
            ApiError: as the pieces' source does.
        """
        async for prompt, piece in pieces:
            self._take(prompt, piece)
        choices = [self._choices[number].whole() for number in sorted(self._choices)]
        return self._head.whole(choices) | {"usage": self._usage.as_dict()}

    async def events(self, first: tuple[int, Piece], rest: AsyncIterator[tuple[int, Piece]]) -> AsyncIterator[str]:
        """Server-sent events of an answer whose first piece has arrived.

        The status line has gone out when a later piece fails, so the error is an event of its own, and
        the stream then ends without ``[DONE]``.
        """
        for event in self._chunks(*first):
            yield event
        try:
            async for arrived in rest:
                for event in self._chunks(*arrived):
                    yield event
        except ApiError as error:
            yield event_of(error.body)
            return
        if self._include_usage:
            yield event_of(self._head.chunk([]) | {"usage": self._usage.as_dict()})
        yield _DONE

    def _chunks(self, prompt: int, piece: Piece) -> list[str]:
        usage = {"usage": None} if self._include_usage else {}
        return [event_of(self._head.chunk([shown]) | usage) for shown in self._take(prompt, piece)]

    def _take(self, prompt: int, piece: Piece) -> list[dict[str, Any]]:
        self._usage.push(prompt, piece)
        number = prompt * self._n + piece.index
        if number not in self._choices:
            self._choices[number] = self._make(number)
        return self._choices[number].push(piece)


def event_of(body: dict[str, Any]) -> str:
    """A body as one server-sent event."""
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"
