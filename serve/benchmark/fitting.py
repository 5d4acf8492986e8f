"""Whether an engine can be asked what a benchmark wants to ask, and what there is to say about it."""

from __future__ import annotations

from roundhouse.build.engine import Engine
from roundhouse.errors import UsageError

from ..settings import EngineSettings
from .wish import BenchmarkWish

__all__ = ["remarks", "require_fit"]

_FAR = 3
"""Standard deviations within which nearly every length is."""


def require_fit(engine: Engine, settings: EngineSettings, wish: BenchmarkWish) -> None:
    """Raise when a request would be longer than any that the engine takes.

    Raises:
        UsageError: with both numbers.
    """
    longest, of_kv = settings.longest_request, settings.kv.tokens < settings.max_seq_len
    why = f"its KV cache has room for {longest:,}" if of_kv else f"its longest request has {longest:,}"
    option = "--kv-cache-tokens" if of_kv else "--max-seq-len"
    name = engine.manifest.name
    workload = wish.workload
    asked = workload.input_tokens + workload.output_tokens
    if workload.kind == "synthetic" and asked > longest:
        told = f"prompts of {workload.input_tokens:,} and answers of {workload.output_tokens:,} tokens"
        raise UsageError(f"{told} do not fit {name}: {why}", hint=f"Ask for fewer tokens, or raise {option}.")
    if workload.kind == "conversations" and workload.output_tokens >= longest:
        told = f"answers of {workload.output_tokens:,} tokens"
        raise UsageError(f"{told} do not fit {name}: {why}", hint=f"Ask for fewer tokens, or raise {option}.")
    if wish.prefill_lengths and max(wish.prefill_lengths) + 1 > longest:
        told = f"prompts of {max(wish.prefill_lengths):,} tokens with one of answer"
        raise UsageError(f"{told} do not fit {name}: {why}", hint=f"Choose shorter ones with --prefill, or raise {option}.")


def remarks(engine: Engine, settings: EngineSettings, wish: BenchmarkWish) -> list[str]:
    """What is no mistake, but explains what will be measured, in sentences."""
    said = []
    workload = wish.workload
    longest = settings.longest_request
    drawn = workload.input_tokens + _FAR * workload.input_spread + workload.output_tokens + _FAR * workload.output_spread
    if workload.kind == "synthetic" and (workload.input_spread or workload.output_spread) and drawn > longest:
        what = "are cut to it" if wish.driver == "loop" else "fail"
        said.append(f"{engine.manifest.name} takes requests of {longest:,} tokens: longer ones, which may be drawn, {what}.")
    most, name = max(wish.concurrencies), engine.manifest.name
    if most > settings.max_batch_size:
        said.append(f"{name} runs {settings.max_batch_size} requests at once (max_batch_size): beyond that they wait.")
    if wish.workload.kind == "synthetic":
        pages = -(-(wish.workload.input_tokens + wish.workload.output_tokens) // settings.page_tokens)
        room = settings.kv.pages // pages
        if room < min(most, settings.max_batch_size):
            said.append(f"{name} has KV pages for {room} such requests at once: more of them wait, or are preempted.")
    return said
