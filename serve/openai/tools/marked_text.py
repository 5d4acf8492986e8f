"""The text of an answer with the markers of its tool calls.

The engine leaves special tokens out of text, and in some tokenizers the markers of tool calls are special. Then, and only
then, the front reads the answer's tokens itself, with a tokenizer to which these markers are words like others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from ...engine.detokenize import TextStream
from ...engine.tokenizer import EngineTokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from ..triton_client import Piece

__all__ = ["MarkedText", "MarkedTokenizer"]


class MarkedTokenizer:
    """Makes the texts of answers. Use :meth:`showing`."""

    def __init__(self, tokenizer: EngineTokenizer) -> None:
        self._tokenizer = tokenizer

    @classmethod
    def showing(cls, backend: Tokenizer, markers: Sequence[str]) -> Self | None:
        """A tokenizer that shows these markers; None when it shows them already.

        Args:
            backend: the model's; it is not changed.
            markers: whole tokens.
        """
        from tokenizers import Tokenizer

        added = backend.get_added_tokens_decoder().values()
        hidden = {token.content for token in added if token.special and token.content in markers}
        if not hidden:
            return None
        written = json.loads(backend.to_str())
        for token in written["added_tokens"]:
            token["special"] = token["special"] and token["content"] not in hidden
        return cls(EngineTokenizer(Tokenizer.from_str(json.dumps(written)), frozenset()))

    def text(self, stop: tuple[str, ...]) -> MarkedText:
        """The text of a new answer that ends before these strings."""
        return MarkedText(TextStream(self._tokenizer, stop))


class MarkedText:
    """The text of one answer, piece by piece."""

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream

    def push(self, piece: Piece) -> str:
        """The text of a piece, in place of the one that it carries."""
        ended_by_token = [piece.stop_reason] == [str(token) for token in piece.token_ids[-1:]]
        shown = piece.token_ids[:-1] if ended_by_token else piece.token_ids
        text = "".join(map(self._stream.push, shown))
        return text if piece.finish_reason is None else text + self._stream.finish()
