"""From a wish to aiperf's configuration file. Not to options: those would show an API key in the list of processes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..driver import PointWish
from ..workload import Workload

__all__ = ["KEY_VARIABLE", "Endpoint", "configuration", "root_url"]

KEY_VARIABLE = "ROUNDHOUSE_AIPERF_KEY"
"""Holds the API key in aiperf's environment; the configuration names it only."""
_SEEDS = 2**31
_CONNECTIONS_A_WORKER = 128
"""A quarter of what aiperf reckons one of its workers can do, so that the client is not what is measured."""


@dataclass(frozen=True)
class Endpoint:
    """Who is asked."""

    url: str
    """Without ``/v1``."""
    model: str
    tokenizer: Path
    """Folder of the tokenizer that makes prompts of a length."""
    has_key: bool = False


def root_url(url: str) -> str:
    """What comes before ``/v1``, as aiperf wants it: it adds ``/v1/…`` itself."""
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


def configuration(
    wish: PointWish, endpoint: Endpoint, artifacts: Path, *, count_here: bool, dataset: Path | None
) -> dict[str, Any]:
    """What ``aiperf profile --config`` reads.

    Args:
        wish: what to measure.
        endpoint: whom to ask.
        artifacts: folder that aiperf writes to.
        count_here: count tokens with the tokenizer, because the endpoint does not tell.
        dataset: conversations in aiperf's form; None for synthetic prompts.
    """
    workload = wish.workload
    asked: dict[str, Any] = {
        "urls": [endpoint.url],
        # Prompts of an exact length are not wrapped into a chat template; conversations are what it is for.
        "type": "completions" if dataset is None else "chat",
        "streaming": True,
        "use_server_token_count": not count_here,
        "timeout": wish.timeout_s,
        # Servers older than `max_completion_tokens` are many, ones that no longer take `max_tokens` are none.
        "use_legacy_max_tokens": True,
        # Answers of the length that was asked for, whatever the model would say.
        "extra": {"ignore_eos": True, "temperature": 0},
    }
    if endpoint.has_key:
        # In a longer text, because aiperf makes a number of a variable that looks like one and stands alone.
        asked["headers"] = {"Authorization": f"Bearer ${{{KEY_VARIABLE}}}"}
    phase: dict[str, Any] = {
        "name": "profiling",
        "type": "concurrency",
        "requests": wish.requests,
        "concurrency": wish.concurrency,
    }
    if workload.cancel_share:
        phase["cancellation"] = {"rate": round(workload.cancel_share * 100, 6), "delay": workload.cancel_after_s}
    return {
        "random_seed": wish.seed % _SEEDS,
        "benchmark": {
            "models": [endpoint.model],
            "endpoint": asked,
            "datasets": [_synthetic(workload, wish.requests) if dataset is None else _from_file(workload, dataset)],
            "phases": [phase],
            "tokenizer": {"name": str(endpoint.tokenizer)},
            "artifacts": {"dir": str(artifacts), "summary": ["json"], "records": ["jsonl"]},
            "gpu_telemetry": {"enabled": False},
            "server_metrics": {"enabled": False},
            "runtime": {
                "ui": "none",
                "workers": math.ceil(wish.concurrency / _CONNECTIONS_A_WORKER),
                "record_processors": 1,
            },
        },
    }


def _synthetic(workload: Workload, requests: int) -> dict[str, Any]:
    dataset: dict[str, Any] = {
        "name": "main",
        "type": "synthetic",
        "entries": requests,  # one each: no prompt comes twice
        "prompts": {
            # aiperf counts the shared beginning on top.
            "isl": _length(workload.input_tokens - workload.prefix_tokens, workload.input_spread),
            "osl": _length(workload.output_tokens, workload.output_spread),
        },
    }
    if workload.prefix_tokens:
        dataset["prefix_prompts"] = {"pool_size": workload.prefixes, "length": workload.prefix_tokens}
    return dataset


def _from_file(workload: Workload, path: Path) -> dict[str, Any]:
    return {
        "name": "main",
        "type": "file",
        "path": str(path),
        "format": "multi_turn",
        "sampling": "shuffle",
        "osl": _length(workload.output_tokens, workload.output_spread),
    }


def _length(mean: int, spread: int) -> dict[str, int]:
    return {"mean": mean, "stddev": spread} if spread else {"mean": mean}
