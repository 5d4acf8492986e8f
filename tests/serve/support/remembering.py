"""A runtime without a model whose next token depends on everything that the pages hold, read back from them.

It keeps token ids where a model keeps keys and values. So a wrong page, a page that was reassigned, a prefix that was not
the same, a chunk left out: each changes what comes out. :func:`expected_tokens` is what must come out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import torch
from driving import PAGE_TOKENS, ScriptedBatch, settings

from roundhouse.serve.engine.arrays import Float32Array
from roundhouse.serve.engine.batch import StepBatch
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.tokenizer import EngineTokenizer

__all__ = ["VOCAB", "RememberingRuntime", "expected_tokens", "remembering_loop"]

VOCAB = 512


class RememberingRuntime:
    """Writes a step's tokens into pages, and answers from what it reads there."""

    def __init__(self, pages: int) -> None:
        self.pages = np.full((pages, PAGE_TOKENS), -1, dtype=np.int64)
        self.tokens_run = 0

    def prepare(self, batch: StepBatch) -> ScriptedBatch:
        return ScriptedBatch(
            page_table=torch.from_numpy(batch.page_table),
            page_count=torch.from_numpy(batch.page_count),
            expected_tags=torch.from_numpy(batch.expected_tags),
            query_start=torch.from_numpy(batch.query_start),
            context_len=torch.from_numpy(batch.context_len),
            batch=batch,
        )

    def page_bytes(self, page: int) -> npt.NDArray[np.uint8]:
        return self.pages[page].view(np.uint8)

    def forward(self, prepared: ScriptedBatch) -> Float32Array:
        batch, table = prepared.batch, prepared.page_table.numpy()
        self.tokens_run += len(batch.token_ids)
        answers = []
        for row in range(len(batch.runs)):
            start, end = int(batch.query_start[row]), int(batch.query_start[row + 1])
            for token, position in zip(batch.token_ids[start:end], batch.positions[start:end], strict=True):
                self.pages[table[row, position // PAGE_TOKENS], position % PAGE_TOKENS] = token
            if end - 1 in batch.sample_rows:
                context = int(batch.context_len[row])
                read = [self.pages[table[row, at // PAGE_TOKENS], at % PAGE_TOKENS] for at in range(context)]
                answers.append(_next_token([int(token) for token in read]))
        logits = np.zeros((len(answers), VOCAB), dtype=np.float32)
        logits[np.arange(len(answers)), answers] = 1
        return logits


def expected_tokens(prompt: list[int], count: int) -> list[int]:
    """What greedy generation must give after this prompt."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(_next_token(tokens))
    return tokens[len(prompt) :]


def remembering_loop(
    tokenizer: EngineTokenizer, *, clock: Callable[[], float] | None = None, **keys: Any
) -> tuple[EngineLoop, RememberingRuntime]:
    chosen = settings(**{"prefix_reuse": True, **keys})
    runtime = RememberingRuntime(chosen.kv.pages)
    more = {} if clock is None else {"clock": clock}
    return EngineLoop(runtime, chosen, tokenizer, vocab=VOCAB, **more), runtime


def _next_token(tokens: list[int]) -> int:
    return 3 + crc32(np.asarray(tokens, dtype="<i4").tobytes()) % (VOCAB - 3)
