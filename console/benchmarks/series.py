"""What of a run must stay the same for a comparison over time: its series."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from roundhouse.serve.benchmark.records import BenchmarkHeader

__all__ = ["hardware_of", "searched_text", "series_of", "serving_of"]

_NO_MATTER = ("name", "calibration")
"""Keys of a recipe that change no speed."""


def serving_of(header: BenchmarkHeader) -> dict[str, Any]:
    """The recipe as it was served: its keys, where the engine's process was told otherwise, as that was told."""
    recipe = dict(header.subject.recipe)
    return recipe | {key: value for key, value in (header.subject.settings or {}).items() if key in recipe}


def hardware_of(header: BenchmarkHeader) -> str:
    """What it ran on, as the command line says it; of an endpoint of which nothing is known, its address."""
    return header.ran_on or header.subject.url or "unknown"


def series_of(header: BenchmarkHeader) -> str:
    """16 hex digits, equal where model, recipe, hardware, workload and driver are.

    What was measured at which concurrencies is no part of it: levels are compared with levels of the same concurrency.
    """
    serving = {key: value for key, value in serving_of(header).items() if key not in _NO_MATTER and value is not None}
    cores = header.environment.hardware.cores if header.environment.hardware else None
    content = {
        "model": header.subject.model,
        "recipe": serving,
        "settings": _settings(header.subject.settings or {}),
        "hardware": [hardware_of(header), cores],
        "workload": header.workload.key,
        "driver": header.driver,
        # Of an engine the server is ours; of an endpoint it says what the recipe does not.
        "server": None if serving else [header.subject.name, header.subject.server],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    """What a process was told that no recipe says. How many tokens the cache holds counts where somebody chose that."""
    told = {name: settings.get(name) for name in ("kernels", "precision", "prefix_reuse")}
    kv = settings.get("kv") or {}
    return told | ({"kv_tokens": kv.get("tokens")} if str(kv.get("binding_limit", "")).startswith("kv_cache") else {})


def searched_text(header: BenchmarkHeader, host: str, note: str, tags: tuple[str, ...]) -> str:
    """What a search looks through, in small letters."""
    subject = header.subject
    words = (
        header.id,
        subject.name,
        subject.model,
        subject.engine_id or "",
        subject.server or "",
        header.workload.name,
        header.workload.words,
        hardware_of(header),
        host,
        note,
        *tags,
    )
    return "\n".join(words).lower()
