"""What NVML says, from a module that answers as it does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from roundhouse.serve.measurement.gpus import NO_GPUS, GpuReading, find_gpus


class FakeNvmlError(Exception):
    pass


class FakeNvml:
    """Two GPUs: one that tells everything, an older one that counts no energy and names itself in bytes."""

    NVMLError = FakeNvmlError

    def __init__(self, *, driver: bool = True) -> None:
        self.driver = driver
        self.used = [1000, 2000]
        self.millijoules = 5_000_000

    def nvmlInit(self) -> None:  # noqa: N802 -- NVML's names
        if not self.driver:
            raise FakeNvmlError("Driver Not Loaded")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str | bytes:  # noqa: N802
        return ("GPU-11aa", b"GPU-22bb")[handle]

    def nvmlDeviceGetHandleByUUID(self, identifier: str) -> int:  # noqa: N802
        if identifier != "MIG-1":
            raise FakeNvmlError("Not Found")
        return 1

    def nvmlDeviceGetName(self, handle: int) -> str | bytes:  # noqa: N802
        return ("NVIDIA H200", b"Tesla K80")[handle]

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "570.1"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(used=self.used[handle], free=10_000 - self.used[handle])

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:  # noqa: N802
        if handle == 1:
            raise FakeNvmlError("Not Supported")
        return self.millijoules

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=75)


def test_every_gpu_tells_what_it_can() -> None:
    gpus = find_gpus(FakeNvml())
    assert gpus.names == ("NVIDIA H200", "Tesla K80")
    assert gpus.driver == "570.1"
    assert gpus.read() == (GpuReading(1000, 5000.0, 0.75), GpuReading(2000, None, 0.75))
    assert gpus.free_memory() == (9000, 8000)


@pytest.mark.parametrize(
    ("devices", "free"),
    [
        (("1", "0"), (8000, 9000)),
        (("1",), (8000,)),
        (("GPU-22bb", "GPU-11"), (8000, 9000)),
        (("MIG-1",), (8000,)),
        (("GPU-", "0"), ()),
        (("0", "-1", "1"), (9000,)),
        (("MIG-2", "0"), ()),
        (("7",), ()),
        ((), ()),
    ],
)
def test_gpus_are_chosen_and_ordered_as_cuda_does(devices: tuple[str, ...], free: tuple[int, ...]) -> None:
    gpus = find_gpus(FakeNvml(), devices)
    assert gpus.free_memory() == free
    assert len(gpus.names) == len(gpus.read()) == len(free)


def test_without_a_driver_or_the_module_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_gpus(FakeNvml(driver=False)) is NO_GPUS
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    assert find_gpus() is NO_GPUS
    assert NO_GPUS.read() == NO_GPUS.free_memory() == ()


def test_the_real_module_answers_or_is_quietly_absent() -> None:
    gpus = find_gpus()
    assert len(gpus.read()) == len(gpus.free_memory()) == len(gpus.names)
