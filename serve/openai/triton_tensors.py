"""Between the front's words and the tensors of a model on Triton."""

from __future__ import annotations

from typing import Any

import msgspec

from ..engine.request import TokenLogprob
from ..triton.encode import sampling_values
from .generation import GenerationOptions, Piece

__all__ = ["input_values", "pieces_of"]

_LOGPROBS = msgspec.json.Decoder(tuple[TokenLogprob, ...])


def input_values(prompt: str | list[int], options: GenerationOptions, streaming: bool) -> dict[str, Any]:
    """The values of a request's tensors, by name."""
    values: dict[str, Any] = {"text_input" if isinstance(prompt, str) else "input_ids": prompt, "streaming": streaming}
    values |= sampling_values(options.sampling)
    if options.cache_salt:
        values["cache_salt"] = options.cache_salt
    if options.priority:
        values["priority"] = options.priority
    if options.deadline_s is not None:
        values["deadline_s"] = options.deadline_s
    return values


def pieces_of(result: Any) -> list[Piece]:
    """What one response holds: a piece of one answer, or every answer whole."""

    def values(name: str) -> list[Any]:
        found = result.as_numpy(name)
        return [] if found is None else found.tolist()

    indices, counts, cached = values("index"), values("completion_tokens"), values("cached_tokens")
    finished, stopped, logprobs = values("finish_reason"), values("stop_reason"), values("logprobs")
    tokens = values("output_ids")
    pieces = []
    for place, text in enumerate(values("text_output")):
        count = counts[place] if len(indices) > 1 else len(tokens)
        pieces.append(
            Piece(
                index=indices[place],
                text=text.decode(),
                finish_reason=finished[place].decode() if finished else None,
                stop_reason=(stopped[place].decode() or None) if stopped else None,
                prompt_tokens=values("prompt_tokens")[0],
                cached_tokens=cached[place],
                completion_tokens=counts[place],
                token_ids=tuple(tokens[:count]),
                logprobs=_LOGPROBS.decode(logprobs[place]) if logprobs else None,
            )
        )
        tokens = tokens[count:]
    return pieces
