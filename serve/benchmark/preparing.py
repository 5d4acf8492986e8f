"""From wishes to subjects that can be opened: everything is looked at before anything is started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.build.store import EngineStore
from roundhouse.errors import UsageError

from ..free_memory import FreeMemory
from ..measurement.endpoints import api_key, base_url, metrics_url, model_at, require_metrics
from ..runtimes import fitted_settings, require_runnable
from ..settings import EngineSettings
from .fitting import require_fit
from .subjects import PreparedSubject
from .wish import BenchmarkWish

__all__ = ["prepare_subjects"]


def prepare_subjects(home: Home, wishes: Sequence[BenchmarkWish]) -> list[PreparedSubject]:
    """Look at wishes, all of them before any is begun. Engines that are started together share the free memory.

    Raises:
        UsageError: one cannot be fulfilled.
        EngineError: an engine is damaged, or was compiled for other software or another GPU.
        SetupError: there is no aiperf, or nothing that runs an engine, and one needs it.
    """
    prepared = []
    store = EngineStore(home)
    engines = [None if wish.engine is None else store.find(wish.engine) for wish in wishes]
    for wish, engine in zip(wishes, engines, strict=True):
        if wish.url is None and engine is not None:
            require_runnable(engine)  # what will never run here needs no aiperf
    if any(wish.driver == "aiperf" for wish in wishes):
        from .aiperf.locate import find_aiperf

        find_aiperf(home)  # said before anything is loaded
    memory = FreeMemory()
    for wish, engine in zip(wishes, engines, strict=True):
        if wish.driver not in ("aiperf", "loop"):
            raise UsageError(f"{wish.driver} is not driven from here", hint="Its result files can be imported.")
        if wish.url is not None:
            prepared.append(_at_url(home, wish, engine))
            continue
        if engine is None:
            raise UsageError("there is nothing to measure", hint="Name an engine, or the URL of an endpoint.")
        free = memory.left_for(engine)
        settings = fitted_settings(engine, EngineSettings.for_engine(engine, wish.overrides, free_memory=free))
        require_fit(engine, settings, wish)
        memory.take(engine, engine.manifest.plan.weight_bytes_per_gpu + settings.kv.bytes)
        prepared.append(PreparedSubject(home, wish, engine, settings))
    return prepared


def _at_url(home: Home, wish: BenchmarkWish, engine: Engine | None) -> PreparedSubject:
    if wish.driver == "loop":
        raise UsageError("an endpoint has no bare loop to be measured", hint="Leave out --bare, or name an engine.")
    url, key = base_url(wish.url or ""), api_key(wish.api_key_variable)
    metrics = None if wish.metrics is None else metrics_url(wish.metrics)
    if wish.tokenizer is not None and not Path(wish.tokenizer).is_dir():
        raise UsageError(f"there is no folder of a tokenizer at {wish.tokenizer}")
    model = model_at(url, wish.model, key)
    if metrics is not None:
        require_metrics(metrics, model)
    return PreparedSubject(home, wish, engine, url=url, model=model, key=key, metrics=metrics)
