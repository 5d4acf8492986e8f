"""Tokens to text, piece by piece: joined pieces are the full decode, and stop strings end it anywhere."""

from __future__ import annotations

from roundhouse.errors import RequestError

from .stop_strings import StopStrings
from .tokenizer import EngineTokenizer

__all__ = ["TextStream"]


class TextStream:
    """The text of one answer.

    An incomplete character is held back until it is complete or the text ends; so is what may be the
    start of a stop string. Special tokens give no text.

    Args:
        tokenizer: the model's.
        stop: strings that end the text.
        min_tokens: what the first so many tokens say is no part of a stop string.
    """

    def __init__(self, tokenizer: EngineTokenizer, stop: tuple[str, ...], min_tokens: int = 0) -> None:
        from tokenizers.decoders import DecodeStream

        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)
        self._visible: list[int] = []
        self._unfed: list[int] = []
        self._given = 0
        self._stops = StopStrings(stop)
        self._unstoppable = min_tokens

    @property
    def stopped_by(self) -> str | None:
        """The stop string that ended the text, or None."""
        return self._stops.found

    def push(self, token_id: int) -> str:
        """Take one token; returns the text that is now certain, often empty. Nothing follows a stop string.

        Raises:
            RequestError: ``internal``, the tokenizer cannot decode these tokens step by step.
        """
        piece = self._decode(token_id)
        if self._unstoppable:
            self._unstoppable -= 1
            return piece
        return self._stops.push(piece)

    def finish(self) -> str:
        """The text ends here: returns everything that was held back."""
        rest = self._tokenizer.decode(self._visible)[self._given :]
        return rest if self._unstoppable else self._stops.push(rest) + self._stops.finish()

    def _decode(self, token_id: int) -> str:
        """The text that one more token makes certain."""
        if not self._tokenizer.shows_text(token_id):
            return ""
        self._visible.append(token_id)
        self._unfed.append(token_id)
        # A run of byte tokens decodes as a whole: one more may turn earlier ones into replacement characters.
        if self._tokenizer.is_byte(token_id):
            return ""
        try:
            piece = self._stream.step(self._tokenizer.backend, self._unfed) or ""
        except Exception as error:  # the library raises nothing more specific
            raise RequestError("internal", f"the tokenizer cannot decode step by step: {error}") from None
        self._unfed = []
        self._given += len(piece)
        return piece
