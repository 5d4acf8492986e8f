"""Requests of a workload as token ids: random ones, and conversations from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .workload import Workload

__all__ = ["PlannedRequest", "plan_requests"]


@dataclass(frozen=True)
class PlannedRequest:
    """One request, before it is sent."""

    prompt_ids: list[int]
    output_tokens: int
    cancel_after_s: float | None = None
    """Seconds after which the client cancels it; None lets it end."""


def plan_requests(
    workload: Workload,
    count: int,
    *,
    seed: int,
    vocab: int,
    longest: int,
    conversations: Callable[[], Sequence[list[int]]] = list,
) -> list[PlannedRequest]:
    """Make the requests of a point; the same seed makes the same ones.

    Args:
        workload: what is asked.
        count: how many.
        seed: of everything that is drawn.
        vocab: token ids are below this.
        longest: tokens that a request may have, prompt and answer: what is drawn longer is cut.
        conversations: gives the prompts of the workload's file; they are asked in an order that is drawn, each once before
            one comes again.
    """
    import numpy as np

    draw = np.random.default_rng(seed)

    def lengths(mean: int, spread: int, least: int, most: Any) -> list[int]:
        drawn = np.rint(draw.normal(mean, spread, count)) if spread else np.full(count, mean)
        return [int(each) for each in np.clip(drawn, least, np.maximum(least, most))]

    def tokens(length: int) -> list[int]:
        ids: list[int] = draw.integers(0, vocab, length).tolist()
        return ids

    prompt = workload.input_tokens if workload.kind == "synthetic" else 1
    outputs = lengths(workload.output_tokens, workload.output_spread, 1, longest - prompt)
    if workload.kind == "conversations":
        given = conversations()
        order = [int(each) for _ in range(-(-count // len(given))) for each in draw.permutation(len(given))]
        prompts = [given[number] for number in order[:count]]
        outputs = [min(most, max(1, longest - len(ids))) for most, ids in zip(outputs, prompts, strict=True)]
    else:
        beginnings = [tokens(workload.prefix_tokens) for _ in range(workload.prefixes)]
        room = longest - np.asarray(outputs)
        inputs = lengths(workload.input_tokens, workload.input_spread, workload.prefix_tokens + 1, room)
        prompts = [
            [*beginnings[number % len(beginnings)], *tokens(length - workload.prefix_tokens)]
            for number, length in enumerate(inputs)
        ]
    cancelled = {int(each) for each in draw.permutation(count)[: round(count * workload.cancel_share)]}
    return [
        PlannedRequest(prompt, answer, workload.cancel_after_s if number in cancelled else None)
        for number, (prompt, answer) in enumerate(zip(prompts, outputs, strict=True))
    ]
