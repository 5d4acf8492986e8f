"""Engines that answer: loaded once, asked by many tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from roundhouse.build.engine import Engine
from roundhouse.serve.accuracy.engine_scorer import EngineScorer
from roundhouse.serve.settings import EngineSettings, Overrides

ScorerMaker = Callable[..., EngineScorer]


def settings_of(engine: Engine, *, reference: bool = False, **overrides: Any) -> EngineSettings:
    """Small steps and pages, so that prompts are cut into chunks and share pages."""
    chosen = {"page_tokens": 8, "max_num_tokens": 48, "max_seq_len": 512, "kv_cache_tokens": 1024, **overrides}
    precision = "reference" if reference else "engine"
    return EngineSettings.for_engine(engine, Overrides(**chosen), free_memory=1 << 30, precision=precision)


@pytest.fixture(scope="module")
def open_scorer(build_engine: Callable[..., Engine]) -> Iterator[ScorerMaker]:
    made: list[EngineScorer] = []

    def make(engine: Engine | None = None, *, stopping: threading.Event | None = None, **overrides: Any) -> EngineScorer:
        engine = engine or build_engine("llama", weights="bf16", kv_cache="bf16")
        made.append(EngineScorer(engine, settings_of(engine, **overrides), stopping or threading.Event()))
        return made[-1]

    yield make
    for scorer in made:
        scorer.close()
