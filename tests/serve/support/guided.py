"""Guided answers without a model: random logits, drawn and put together as the engine loop does it."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundhouse.errors import RequestError
from roundhouse.serve.engine.admission import make_sequence
from roundhouse.serve.engine.guides import CompiledGuide, GuideCompiler
from roundhouse.serve.engine.progress import append_token
from roundhouse.serve.engine.request import Chunk, Guide, Request, SamplingParams
from roundhouse.serve.engine.sampling import choose_tokens
from roundhouse.serve.engine.sequence import Sequence
from roundhouse.serve.engine.tokenizer import EngineTokenizer


def compiled(compiler: GuideCompiler, guide: Guide) -> CompiledGuide:
    """A guide that is done."""
    made = compiler.compile(guide)
    while not made.wait(0.01):
        pass
    return made


def guided_sequence(tokenizer: EngineTokenizer, compiler: GuideCompiler, vocab: int, guide: Guide, **sampling: Any) -> Sequence:
    """The sequence of a guided request."""
    params = SamplingParams(**{"max_tokens": 200, "temperature": 1.0, "guide": guide, **sampling})
    request = Request(request_id="r", prompt_ids=[3], sampling=params)
    sequence = make_sequence(request, tokenizer, vocab=vocab, max_seq_len=4096, pool_tokens=4096, guides=compiler)
    while not sequence.sampler.ready(0.01):
        pass
    return sequence


def next_chunk(sequence: Sequence, logits: np.ndarray, tokenizer: EngineTokenizer) -> Chunk:
    """The chunk that one row of logits leads to.

    Raises:
        RequestError: the row has no token.
    """
    (choice,) = choose_tokens(logits[None], [sequence.sampler])
    if isinstance(choice, RequestError):
        raise choice
    return append_token(sequence, choice, tokenizer.eos_ids)


def write(sequence: Sequence, tokenizer: EngineTokenizer, vocab: int, seed: int, *, scale: float = 3.0) -> tuple[str, Chunk]:
    """The whole text that random logits lead to, and the last chunk."""
    random = np.random.default_rng(seed)
    text = ""
    while True:
        chunk = next_chunk(sequence, (random.normal(size=vocab) * scale).astype(np.float32), tokenizer)
        text += chunk.text
        if chunk.finish_reason is not None:
            return text, chunk
