"""One more token for a sequence: its text, and whether that ends the request."""

from __future__ import annotations

from .request import Chunk, FinishReason
from .sequence import Sequence

__all__ = ["append_token", "chunk_of"]


def append_token(sequence: Sequence, token: int, eos_ids: frozenset[int]) -> Chunk:
    """Add a sampled token to a sequence and return the chunk for it; a finish reason makes it the last.

    A stop string counts before the length: text that ends in one was not cut off.

    Raises:
        RequestError: ``internal``, the tokens cannot be turned into text.
    """
    sequence.tokens.append(token)
    if token in eos_ids and not sequence.sampling.ignore_eos:
        return chunk_of(sequence, [token], sequence.text.finish(), "stop", str(token))
    text = sequence.text.push(token)
    last = sequence.generated == sequence.max_new
    if last:
        text += sequence.text.finish()
    if sequence.text.stopped_by is not None:
        return chunk_of(sequence, [token], text, "stop", sequence.text.stopped_by)
    return chunk_of(sequence, [token], text, "length" if last else None)


def chunk_of(
    sequence: Sequence, token_ids: list[int], text: str, reason: FinishReason | None, stop_reason: str | None = None
) -> Chunk:
    """A chunk with the sequence's counts."""
    return Chunk(
        request_id=sequence.request_id,
        text=text,
        token_ids=token_ids,
        prompt_tokens=sequence.prompt_tokens,
        completion_tokens=sequence.generated,
        finish_reason=reason,
        stop_reason=stop_reason,
    )
