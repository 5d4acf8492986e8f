"""Driving an engine loop in tests: settings, requests, everything that comes out, and a runtime without a model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from roundhouse.build.planner.kv_budget import KvBudget
from roundhouse.build.recipe import Guard
from roundhouse.serve.engine.arrays import Float32Array
from roundhouse.serve.engine.batch import StepBatch
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.request import Chunk, Failure, Output, Request, SamplingParams
from roundhouse.serve.engine.runtime import PreparedBatch
from roundhouse.serve.settings import EngineSettings

PAGE_TOKENS = 8
MAX_SEQ_LEN = 128


def settings(
    pages: int = 64,
    *,
    guard: Guard = "tags",
    guard_sample: float = 1.0,
    precision: Literal["engine", "reference"] = "engine",
    max_batch_size: int = 8,
    max_num_tokens: int = 64,
    prefix_reuse: bool = False,
    max_waiting: int = 1024,
) -> EngineSettings:
    return EngineSettings(
        page_tokens=PAGE_TOKENS,
        max_batch_size=max_batch_size,
        max_seq_len=MAX_SEQ_LEN,
        max_num_tokens=max_num_tokens,
        guard=guard,
        guard_sample=guard_sample,
        precision=precision,
        prefix_reuse=prefix_reuse,
        max_waiting=max_waiting,
        kv=KvBudget(
            pages=pages,
            group_pages=(pages,),
            page_tokens=PAGE_TOKENS,
            bytes=0,
            tokens=pages * PAGE_TOKENS,
            at_context=None,
            binding_limit="test",
        ),
    )


def request(name: str, prompt: list[int] | str, **sampling: Any) -> Request:
    """A request that goes on past end-of-sequence tokens, unless told otherwise."""
    params = SamplingParams(**{"ignore_eos": True, **sampling})
    if isinstance(prompt, str):
        return Request(request_id=name, prompt=prompt, sampling=params)
    return Request(request_id=name, prompt_ids=prompt, sampling=params)


def random_prompt(length: int, *, seed: int = 0, vocab: int = 512) -> list[int]:
    return np.random.default_rng(seed).integers(3, vocab, length).tolist()


def drain(loop: EngineLoop, *, most: int = 1000) -> list[Output]:
    """Step until nothing is left, checking the invariants after every step."""
    outputs: list[Output] = []
    for _ in range(most):
        if not loop.has_work:
            return outputs
        outputs += loop.step()
        loop.check_integrity()
    raise AssertionError(f"still at work after {most} steps")


def serve(loop: EngineLoop, *requests: Request) -> dict[str, list[Output]]:
    """Submit requests together and return everything that came out, by request id."""
    for each in requests:
        loop.submit(each)
    grouped: dict[str, list[Output]] = {}
    for output in drain(loop):
        grouped.setdefault(output.request_id, []).append(output)
    return grouped


def tokens(outputs: list[Output]) -> list[int]:
    return [token for output in outputs if isinstance(output, Chunk) for token in output.token_ids]


def text(outputs: list[Output]) -> str:
    return "".join(output.text for output in outputs if isinstance(output, Chunk))


def failure(outputs: list[Output]) -> Failure:
    """The failure that must be the last output of a request."""
    assert isinstance(outputs[-1], Failure), outputs
    return outputs[-1]


@dataclass(frozen=True)
class ScriptedBatch(PreparedBatch):
    batch: StepBatch


class ScriptedRuntime:
    """A runtime without a model: after token t comes the token that ``follow`` names for t."""

    def __init__(self, vocab: int, follow: dict[int, int] | None = None) -> None:
        self._vocab = vocab
        self._follow = follow or {}
        self.forwards: list[StepBatch] = []

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
        """Nothing lies in pages."""
        return np.zeros(0, dtype=np.uint8)

    def forward(self, prepared: ScriptedBatch) -> Float32Array:
        batch = prepared.batch
        self.forwards.append(batch)
        logits = np.zeros((len(batch.sample_rows), self._vocab), dtype=np.float32)
        for row, token in enumerate(batch.token_ids[batch.sample_rows].tolist()):
            logits[row, self._follow.get(token, (token + 1) % self._vocab)] = 1
        return logits


def scripted_loop(
    tokenizer: Any, follow: dict[int, int] | None = None, *, clock: Callable[[], float] = time.monotonic, **keys: Any
) -> tuple[EngineLoop, ScriptedRuntime]:
    runtime = ScriptedRuntime(512, follow)
    return EngineLoop(runtime, settings(**keys), tokenizer, vocab=512, clock=clock), runtime
