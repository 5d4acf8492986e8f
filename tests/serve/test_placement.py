from __future__ import annotations

from pathlib import Path

import pytest
from engine_configs import compiled_engine

from roundhouse.build.compiled import CompiledGuard
from roundhouse.build.engine import Engine
from roundhouse.errors import UsageError
from roundhouse.serve.free_memory import FreeMemory
from roundhouse.serve.placement import place_engines
from roundhouse.serve.runtimes import fitted_settings
from roundhouse.serve.settings import EngineSettings, Overrides

ROOM = 10 * 2**30


class OneGpu:
    names = ("a",)
    driver = None

    def read(self) -> tuple[()]:
        return ()

    def free_memory(self) -> tuple[int, ...]:
        return (ROOM,)


def named(engine: Engine, name: str) -> Engine:
    return Engine(engine.folder, engine.manifest.model_copy(update={"name": name}))


def test_an_engine_alone_sizes_its_own_pool(tiny_engine: Engine) -> None:
    (placed,) = place_engines([tiny_engine], Overrides(max_seq_len=64), memory=FreeMemory(ROOM))
    assert placed.overrides == Overrides(max_seq_len=64)
    assert placed.name == tiny_engine.manifest.name


def test_several_are_told_their_pools_from_what_the_ones_before_leave(tiny_engine: Engine) -> None:
    engines = [named(tiny_engine, "one"), named(tiny_engine, "two")]
    given = Overrides(memory_fraction=0.5)
    first, second = place_engines(engines, given, memory=FreeMemory(ROOM))
    alone = EngineSettings.for_engine(tiny_engine, given, free_memory=ROOM)
    weights = tiny_engine.manifest.plan.weight_bytes_per_gpu
    rest = EngineSettings.for_engine(tiny_engine, given, free_memory=ROOM - weights - alone.kv.bytes)
    assert first.overrides == Overrides(kv_cache_bytes=alone.kv.bytes)
    assert second.overrides == Overrides(kv_cache_bytes=rest.kv.bytes)
    assert rest.kv.bytes < alone.kv.bytes
    started = EngineSettings.for_engine(tiny_engine, first.overrides, free_memory=ROOM)
    assert started.kv.pages == alone.kv.pages


def test_a_pool_is_told_as_the_engine_can_have_it(tiny_engine: Engine, tmp_path: Path) -> None:
    """What free memory decided is more than its page check counts: told as a size, it would be refused."""
    guard = CompiledGuard(file="guard.engine", plugin="embedded", rows=8, columns=16, pages=60)
    engine = named(compiled_engine(tiny_engine, tmp_path, guard=guard), "compiled")
    limits = Overrides(max_batch_size=8, max_seq_len=128, max_num_tokens=64, page_tokens=8, memory_fraction=0.5)
    placed, _ = place_engines([engine, named(tiny_engine, "other")], limits, memory=FreeMemory(ROOM, OneGpu()))
    started = EngineSettings.for_engine(engine, placed.overrides, free_memory=ROOM)
    assert fitted_settings(engine, started).kv.pages == 60


def test_what_does_not_fit_beside_the_others_is_refused(tiny_engine: Engine) -> None:
    engines = [named(tiny_engine, "one"), named(tiny_engine, "two")]
    with pytest.raises(UsageError, match=r"exceed the .* of free memory"):
        place_engines(engines, Overrides(kv_cache_bytes=ROOM * 2 // 3), memory=FreeMemory(ROOM))


def test_two_of_one_name_are_refused(tiny_engine: Engine) -> None:
    with pytest.raises(UsageError, match="two engines would be served as a-b"):
        place_engines([named(tiny_engine, "a b"), named(tiny_engine, "a/b")], Overrides(), memory=FreeMemory(ROOM))
