"""What GPUs did during a point, summed up from readings."""

from __future__ import annotations

from roundhouse.serve.benchmark.gpu_use import gpu_use
from roundhouse.serve.measurement.gpus import NO_GPUS, GpuReading


def test_a_point_is_the_most_memory_the_energy_between_and_the_utilization_within() -> None:
    older = GpuReading(2000, None, 0.75)
    readings = [
        (GpuReading(1000, 5000.0, 0.25), older),
        (GpuReading(9000, 5500.0, 0.75), older),
        (GpuReading(3000, 6000.0, 0.75), older),
    ]
    first, second = gpu_use(("NVIDIA H200", "Tesla K80"), readings)
    assert (first.index, first.name, first.memory_used_most, first.energy_j) == (0, "NVIDIA H200", 9000, 1000.0)
    assert first.utilization_mean == 0.75, "the first reading is of the time before"
    assert (second.index, second.memory_used_most, second.energy_j) == (1, 2000, None)


def test_a_counter_that_began_anew_gives_no_negative_energy() -> None:
    readings = [(GpuReading(1, 100.0, None),), (GpuReading(1, 3.0, None),)]
    (use,) = gpu_use(["gpu"], readings)
    assert use.energy_j == 0.0
    assert use.utilization_mean is None


def test_where_there_are_no_gpus_none_did_anything() -> None:
    assert gpu_use(NO_GPUS.names, [NO_GPUS.read(), NO_GPUS.read()]) == ()
