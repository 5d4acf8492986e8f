"""The choices of an answer: what each shows for the pieces that come, streamed or as a whole."""

from __future__ import annotations

from typing import Any, Protocol

from .logprobs import CompletionLogprobs, chat_logprobs, joined_logprobs
from .token_text import TokenText
from .tools import ArgumentsDelta, CallDelta, CallParser, Delta, TextDelta
from .tools.marked_text import MarkedText
from .triton_client import Piece

__all__ = ["ChatChoice", "Choice", "CompletionChoice"]


class Choice(Protocol):
    """One choice of an answer. Whole or streamed, it says the same."""

    def push(self, piece: Piece) -> list[dict[str, Any]]:
        """Take a piece; returns what a stream shows for it, in order."""
        ...

    def whole(self) -> dict[str, Any]:
        """What an answer that is not streamed shows, after the last piece."""
        ...


class CompletionChoice:
    """A choice of a completion.

    Args:
        index: which choice it is.
        tokens: what tokens spell.
        echo: the prompt, when it is to stand before the text.
    """

    def __init__(self, index: int, tokens: TokenText, echo: str = "") -> None:
        self._index = index
        self._echo = echo
        self._logprobs = CompletionLogprobs(tokens, len(echo))
        self._shown: list[dict[str, Any]] = []

    def push(self, piece: Piece) -> list[dict[str, Any]]:
        shown = {
            "index": self._index,
            "text": piece.text if self._shown else self._echo + piece.text,
            "logprobs": self._logprobs.push(piece.logprobs),
            "finish_reason": piece.finish_reason,
        }
        self._shown.append(shown)
        return [shown]

    def whole(self) -> dict[str, Any]:
        return self._shown[-1] | {
            "text": "".join(shown["text"] for shown in self._shown),
            "logprobs": joined_logprobs([shown["logprobs"] for shown in self._shown]),
        }


class ChatChoice:
    """A choice of a chat.

    Args:
        index: which choice it is.
        tokens: what tokens spell.
        calls: reads tool calls out of the text; None when nothing can be called.
        opening: how the answer begins, where that was given with the prompt.
        marked: the text with the markers of calls, where pieces come without.
        parallel: whether calls after the first are shown.
    """

    def __init__(
        self,
        index: int,
        tokens: TokenText,
        calls: CallParser | None = None,
        *,
        opening: str = "",
        marked: MarkedText | None = None,
        parallel: bool = True,
    ) -> None:
        self._index = index
        self._tokens = tokens
        self._parser = calls
        self._opening = opening
        self._marked = marked
        self._parallel = parallel
        self._begun = False
        self._text: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._logprobs: list[dict[str, Any] | None] = []
        self._finish_reason: str | None = None

    def push(self, piece: Piece) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = [] if self._begun else [{"role": "assistant", "content": ""}]
        self._begun = True
        deltas += [self._take(delta) for delta in self._read(piece) if self._shows(delta)]
        logprobs = chat_logprobs(self._tokens, piece.logprobs)
        self._logprobs.append(logprobs)
        if logprobs is not None and not deltas:
            deltas = [{"content": ""}]
        shown = [self._shown(delta) for delta in deltas]
        if shown:
            shown[-1]["logprobs"] = logprobs
        if piece.finish_reason is not None:
            called = bool(self._calls) and piece.finish_reason == "stop"
            self._finish_reason = "tool_calls" if called else piece.finish_reason
            shown.append(self._shown({}, self._finish_reason))
        return shown

    def whole(self) -> dict[str, Any]:
        text = "".join(self._text)
        message: dict[str, Any] = {"role": "assistant", "content": text if text or not self._calls else None, "refusal": None}
        if self._calls:
            message["tool_calls"] = self._calls
        return {
            "index": self._index,
            "message": message,
            "logprobs": joined_logprobs(self._logprobs),
            "finish_reason": self._finish_reason,
        }

    def _read(self, piece: Piece) -> list[Delta]:
        text = piece.text if self._marked is None else self._marked.push(piece)
        if self._parser is None:
            return [TextDelta(text)] if text else []
        deltas = self._parser.push(self._opening + text)
        self._opening = ""
        return deltas if piece.finish_reason is None else deltas + self._parser.finish()

    def _shows(self, delta: Delta) -> bool:
        return self._parallel or isinstance(delta, TextDelta) or delta.index == 0

    def _take(self, delta: Delta) -> dict[str, Any]:
        """Add a delta to the message; returns it in OpenAI's form."""
        match delta:
            case TextDelta(text):
                self._text.append(text)
                return {"content": text}
            case CallDelta(index, call_id, name):
                call = {"id": call_id, "type": "function"}
                self._calls.append({**call, "function": {"name": name, "arguments": ""}})
                return {"tool_calls": [{"index": index, **call, "function": {"name": name, "arguments": ""}}]}
            case ArgumentsDelta(index, fragment):
                self._calls[index]["function"]["arguments"] += fragment
                return {"tool_calls": [{"index": index, "function": {"arguments": fragment}}]}

    def _shown(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return {"index": self._index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
