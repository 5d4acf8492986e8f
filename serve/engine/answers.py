"""The sequences of one request: one for each of its ``n`` answers, which share the prompt's pages."""

from __future__ import annotations

from dataclasses import replace

from .admission import make_sequence
from .detokenize import TextStream
from .guides import GuideCompiler
from .prefix_cache import root_key
from .request import Request
from .sequence import Sequence
from .tokenizer import EngineTokenizer

__all__ = ["make_answers"]


def make_answers(
    request: Request,
    tokenizer: EngineTokenizer,
    *,
    vocab: int,
    max_seq_len: int,
    pool_tokens: int,
    guides: GuideCompiler,
    max_answers: int,
    arrival: int,
) -> list[Sequence]:
    """Check a request and make its sequences, the first of which computes the prompt for all.

    Args:
        request: as it came from the client.
        tokenizer: the model's.
        vocab: token ids of the model are below this.
        max_seq_len: prompt and generated tokens together.
        pool_tokens: tokens that the whole KV pool holds.
        guides: compiles what the text must look like.
        max_answers: the largest ``n``.
        arrival: the request's place in the order of arrival.

    Raises:
        RequestError: ``invalid_request``, naming the value and what is allowed; ``overloaded``, others' guides keep the
            compiler busy.
    """
    first = make_sequence(
        request,
        tokenizer,
        vocab=vocab,
        max_seq_len=max_seq_len,
        pool_tokens=pool_tokens,
        guides=guides,
        max_answers=max_answers,
    )
    first.root = root_key(request.cache_salt)
    first.priority, first.arrival = request.priority, arrival
    others = [
        replace(
            first,
            tokens=list(first.tokens),
            sampler=first.sampler.for_answer(index),
            text=TextStream(tokenizer, request.sampling.stop, request.sampling.min_tokens),
            index=index,
            leader=first,
            grants=[],
            keys=[],
        )
        for index in range(1, request.sampling.n)
    ]
    return [first, *others]
