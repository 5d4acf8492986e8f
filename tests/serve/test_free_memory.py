"""How much memory an engine may take, on a CPU and on GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_configs import compiled_engine

from roundhouse.build.engine import Engine
from roundhouse.build.hardware import this_machine
from roundhouse.errors import SetupError
from roundhouse.serve.free_memory import FreeMemory, free_memory_for
from roundhouse.serve.measurement.gpus import NO_GPUS


class FourGpus:
    names = ("a", "b", "c", "d")
    driver = None

    def read(self) -> tuple[()]:
        return ()

    def free_memory(self) -> tuple[int, ...]:
        return (80, 60, 70, 10)


def test_the_torch_target_takes_this_machine_s_memory(tiny_engine: Engine) -> None:
    free = free_memory_for(tiny_engine, FourGpus())
    assert free == pytest.approx(this_machine().free_memory, rel=0.2)


@pytest.mark.parametrize(("ranks", "free"), [(1, 80), (2, 60), (4, 10)])
def test_a_compiled_engine_takes_that_of_the_fullest_of_its_gpus(
    tiny_engine: Engine, tmp_path: Path, ranks: int, free: int
) -> None:
    assert free_memory_for(compiled_engine(tiny_engine, tmp_path, tp=ranks), FourGpus()) == free


def test_what_engines_take_is_taken_from_the_memory_that_they_run_in(tiny_engine: Engine, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    alone, pair = compiled_engine(tiny_engine, one), compiled_engine(tiny_engine, two, tp=2)
    memory = FreeMemory(1000, FourGpus())
    memory.take(tiny_engine, 900)
    assert [memory.left_for(each) for each in (tiny_engine, alone, pair)] == [100, 80, 60]
    memory.take(alone, 30)
    assert [memory.left_for(each) for each in (tiny_engine, alone, pair)] == [100, 50, 50]
    memory.take(pair, 45)
    assert [memory.left_for(each) for each in (tiny_engine, alone, pair)] == [100, 5, 5]


def test_too_few_gpus_are_told_before_anything_is_started(tiny_engine: Engine, tmp_path: Path) -> None:
    engine = compiled_engine(tiny_engine, tmp_path, tp=8)
    with pytest.raises(SetupError, match="runs on 8 GPUs, and 4 are seen here"):
        free_memory_for(engine, FourGpus())
    with pytest.raises(SetupError, match="runs on 8 GPUs, and 0 are seen here"):
        free_memory_for(engine, NO_GPUS)


def test_the_gpus_are_those_that_the_ranks_will_see(
    tiny_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    machine = FourGpus().free_memory()
    seen: list[int] = []

    class Seen(FourGpus):
        def free_memory(self) -> tuple[int, ...]:
            return tuple(machine[number] for number in seen)

    def found(*, devices: tuple[str, ...]) -> Seen:
        seen.extend(map(int, devices))
        return Seen()

    monkeypatch.setattr("roundhouse.serve.free_memory.find_gpus", found)
    assert free_memory_for(compiled_engine(tiny_engine, tmp_path, tp=2)) == 10
    assert seen == [3, 1]
