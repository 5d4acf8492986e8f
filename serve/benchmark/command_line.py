"""The command that measures the same again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from ..settings import Overrides
from .option_names import OPTIONS
from .wish import BenchmarkWish
from .workload import Workload
from .workload_files import name_of_workload

__all__ = ["command_of"]


def command_of(wishes: Sequence[BenchmarkWish], *, workload: str | None = None) -> str:
    """A command line that makes these wishes, which differ only in what they measure. Holds no secrets: keys are named.

    Args:
        wishes: at least one.
        workload: how the workload was named; None names it by what it is.
    """
    first = wishes[0]
    alike = all(wish.overrides == first.overrides for wish in wishes)
    words = ["roundhouse", "bench"]
    words += [_subject(wish, with_overrides=not alike) for wish in wishes]
    words += OPTIONS.typed("concurrencies", ",".join(map(str, first.concurrencies)))
    words += _workload(first.workload, workload)
    words += OPTIONS.typed("repeats", first.repeats)
    if first.driver == "loop":
        words.append("--bare")
    if first.prefill_lengths:
        words += OPTIONS.typed("prefill_lengths", ",".join(map(str, first.prefill_lengths)))
    words += OPTIONS.typed("seed", first.seed)
    if first.request_timeout_s != BenchmarkWish.model_fields["request_timeout_s"].default:
        words += OPTIONS.typed("request_timeout_s", first.request_timeout_s)
    for name in ("model", "tokenizer", "metrics", "api_key_variable", "server"):
        given = {value for wish in wishes if (value := getattr(wish, name)) is not None}
        for value in sorted(given)[:1]:
            words += OPTIONS.typed(name, value)
    if alike:
        for name, value in _changed(first.overrides).items():
            words += OPTIONS.typed(name, value)
    return shlex.join(words)


def _subject(wish: BenchmarkWish, *, with_overrides: bool) -> str:
    name = wish.url or wish.engine or ""
    changed = _changed(wish.overrides) if with_overrides and wish.url is None else {}
    return f"{name}:{','.join(f'{key}={str(value).lower()}' for key, value in changed.items())}" if changed else name


def _workload(workload: Workload, named: str | None) -> list[str]:
    lengths = {"input_tokens": workload.input_tokens, "output_tokens": workload.output_tokens}
    if named is None and workload == Workload(requests_each=workload.requests_each, **lengths):
        words = [word for key, value in lengths.items() for word in OPTIONS.typed(key, value)]
    else:
        words = OPTIONS.typed("workload", named or name_of_workload(workload))
    return [*words, *OPTIONS.typed("requests_each", workload.requests_each)]


def _changed(overrides: Overrides) -> dict[str, Any]:
    return overrides.model_dump(exclude_none=True)
