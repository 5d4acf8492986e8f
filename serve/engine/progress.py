"""One more token for a sequence: its text, and whether that ends the answer."""

from __future__ import annotations

from .request import Chunk, FinishReason, TokenLogprob
from .sampling import Choice
from .sequence import Sequence

__all__ = ["append_token", "chunk_of"]


def append_token(sequence: Sequence, choice: Choice, eos_ids: frozenset[int]) -> Chunk:
    """Add a chosen token to a sequence and return the chunk for it; a finish reason makes it the last.

    End-of-sequence tokens and ``stop_token_ids`` give no text. A stop string counts before the length, and so does a guide
    that is finished: such a text was not cut off.

    Raises:
        RequestError: ``internal``, the tokens cannot be turned into text, or the guide does not allow this one.
    """
    token, params = choice.token, sequence.sampling
    sequence.tokens.append(token)
    sequence.sampler.commit(token)
    logprobs = None if choice.logprob is None else [choice.logprob]
    if token in params.stop_token_ids or (token in eos_ids and not params.ignore_eos):
        return chunk_of(sequence, [token], sequence.text.finish(), "stop", str(token), logprobs)
    text = sequence.text.push(token)
    finished, last = sequence.sampler.finished, sequence.generated == sequence.max_new
    if finished or last:
        text += sequence.text.finish()
    if finished or sequence.text.stopped_by is not None:
        return chunk_of(sequence, [token], text, "stop", sequence.text.stopped_by, logprobs)
    return chunk_of(sequence, [token], text, "length" if last else None, None, logprobs)


def chunk_of(
    sequence: Sequence,
    token_ids: list[int],
    text: str,
    reason: FinishReason | None,
    stop_reason: str | None = None,
    logprobs: list[TokenLogprob] | None = None,
) -> Chunk:
    """A chunk with the sequence's counts."""
    return Chunk(
        request_id=sequence.request_id,
        index=sequence.index,
        text=text,
        token_ids=token_ids,
        prompt_tokens=sequence.prompt_tokens,
        cached_tokens=sequence.cached_tokens,
        completion_tokens=sequence.generated,
        logprobs=logprobs,
        finish_reason=reason,
        stop_reason=stop_reason,
    )
