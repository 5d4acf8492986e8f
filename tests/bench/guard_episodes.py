"""Episodes with the page check off and on, by turns, on one runtime: weights and pages at the same place in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from cells import Cell, DecodeWindow, Run
from systems import chunks_of, complete, greedy_requests

from roundhouse.build.recipe import Guard
from roundhouse.errors import ServeError
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.measurement.processes import look

__all__ = ["METRICS", "OFF", "Episode", "interleaved", "play", "rotated"]

OFF: Guard = "off"

_QUANTILES = {"p50 ms": 0.5, "p95 ms": 0.95, "p99 ms": 0.99}
METRICS = ("tokens/s", *_QUANTILES)
"""Output tokens a second of an episode, prompts included; then quantiles of its inter-token latency."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class Episode:
    """A batch of prompts that one loop has answered."""

    cell: Cell
    """Its ``system`` is the level of the check, its ``repeat`` the round."""
    step_ms: tuple[float, ...]
    """Every step in which all requests decode: so long each of them waited for its next token."""

    @property
    def metrics(self) -> dict[str, float]:
        """By name, as in :data:`METRICS`."""
        latencies = {name: float(np.quantile(self.step_ms, part)) for name, part in _QUANTILES.items()}
        return {"tokens/s": self.cell.tokens_per_s, **latencies}


def rotated(values: Sequence[Value], by: int) -> list[Value]:
    """The values in their order, beginning ``by`` places on: over as many rounds as there are, each has been at each place."""
    start = by % len(values)
    return [*values[start:], *values[:start]]


def interleaved(
    loops: Mapping[Guard, EngineLoop], prompts_of: Callable[[int], list[list[int]]], new_tokens: int, rounds: int
) -> Iterator[Episode]:
    """Let every loop answer the same prompts in every round, in an order that is rotated.

    Args:
        loops: by level, all idle. Their pages are the same ones: only one holds any at a time.
        prompts_of: a round's prompts, by its number.
        new_tokens: of each answer.
        rounds: how many.

    Raises:
        ServeError: as :func:`play`.
    """
    for number in range(rounds):
        prompts = prompts_of(number)
        for level in rotated(list(loops), number):
            before = look()
            run, step_ms = play(loops[level], prompts, new_tokens)
            yield Episode(Cell(level, len(prompts), number, run, before.others(look())), step_ms)


def play(
    loop: EngineLoop,
    prompts: Sequence[list[int]],
    new_tokens: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Run, tuple[float, ...]]:
    """Answer prompts all at once, each with so many tokens; afterwards the loop holds no page.

    Returns:
        The run, and the milliseconds of every step in which all requests decode.

    Raises:
        ServeError: a request failed or was cut, or there was no such step.
    """
    window, tokens, step_ms = DecodeWindow(len(prompts)), 0, []
    began = before = clock()
    for request in greedy_requests(prompts, new_tokens):
        loop.submit(request)
    while loop.has_work:
        all_decode = window.open
        chunks = chunks_of(loop.step())
        now = clock()
        if all_decode:
            step_ms.append((now - before) * 1000)
        window.note(chunks, now)
        tokens += sum(len(chunk.token_ids) for chunk in chunks)
        before = now
    if not step_ms:
        raise ServeError("no step in which all requests decode", hint="Take more output tokens.")
    loop.forget_prefixes()
    return Run(complete(tokens, prompts, new_tokens), before - began, window.tokens_per_s), tuple(step_ms)
