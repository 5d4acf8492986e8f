"""What the GPUs of this machine do meanwhile, as NVML says; nothing where there are none."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

__all__ = ["NO_GPUS", "GpuReading", "Gpus", "find_gpus"]

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class GpuReading:
    """One GPU at a moment."""

    memory_used: int
    """Bytes, by whomever."""
    energy_j: float | None
    """Joules since the driver was loaded; None where the GPU does not count them."""
    utilization: float | None
    """From 0 to 1, over the last moments."""


class Gpus(Protocol):
    """The GPUs of a machine."""

    names: tuple[str, ...]
    driver: str | None
    """Version of NVIDIA's driver."""

    def read(self) -> tuple[GpuReading, ...]:
        """Every one of them as of now, in the order of their names."""
        ...

    def free_memory(self) -> tuple[int, ...]:
        """Bytes that may still be taken on each, in the same order."""
        ...


class _NoGpus:
    names: tuple[str, ...] = ()
    driver: str | None = None

    def read(self) -> tuple[GpuReading, ...]:
        return ()

    def free_memory(self) -> tuple[int, ...]:
        return ()


NO_GPUS: Gpus = _NoGpus()


class _NvmlGpus:
    """The GPUs that NVML knows.

    Args:
        nvml: the module ``pynvml``, initialised.
        devices: as :func:`find_gpus` takes them.
    """

    def __init__(self, nvml: Any, devices: Sequence[str] | None) -> None:
        self._nvml = nvml
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        self._handles = handles if devices is None else self._chosen(handles, devices)
        self.names: tuple[str, ...] = tuple(_text(nvml.nvmlDeviceGetName(handle)) for handle in self._handles)
        self.driver: str | None = self._asked(lambda: _text(nvml.nvmlSystemGetDriverVersion()))

    def read(self) -> tuple[GpuReading, ...]:
        return tuple(self._read(handle) for handle in self._handles)

    def free_memory(self) -> tuple[int, ...]:
        return tuple(self._free(handle) for handle in self._handles)

    def _chosen(self, handles: Sequence[Any], devices: Sequence[str]) -> list[Any]:
        """As CUDA reads the names: by number, or by the beginning of an identifier; the first that is none ends the list."""
        named = {str(index): handle for index, handle in enumerate(handles)}
        identifiers = [(_text(self._nvml.nvmlDeviceGetUUID(handle)), handle) for handle in handles]
        chosen: list[Any] = []
        for device in devices:
            fitting = [
                handle for identifier, handle in identifiers if device.startswith("GPU-") and identifier.startswith(device)
            ]
            if device.startswith("MIG-"):
                fitting = [self._asked(partial(self._nvml.nvmlDeviceGetHandleByUUID, device))]
            handle = fitting[0] if len(fitting) == 1 else named.get(device)
            if handle is None:
                break
            chosen.append(handle)
        return chosen

    def _free(self, handle: Any) -> int:
        return self._asked(lambda: int(self._nvml.nvmlDeviceGetMemoryInfo(handle).free)) or 0

    def _read(self, handle: Any) -> GpuReading:
        nvml = self._nvml
        return GpuReading(
            memory_used=self._asked(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used)) or 0,
            energy_j=self._asked(lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000),  # millijoules
            utilization=self._asked(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),  # per cent
        )

    def _asked(self, question: Callable[[], _Value]) -> _Value | None:
        """The answer, or None where this GPU has none: what NVML knows differs from GPU to GPU."""
        try:
            return question()
        except self._nvml.NVMLError:
            return None


def find_gpus(nvml: Any = None, devices: Sequence[str] | None = None) -> Gpus:
    """The GPUs of this machine; :data:`NO_GPUS` without NVIDIA's driver or without the package ``nvidia-ml-py``.

    Args:
        nvml: stands for the module ``pynvml``.
        devices: only these, in this order, by number or identifier as ``CUDA_VISIBLE_DEVICES`` names them; all when None.
    """
    if nvml is None:
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return NO_GPUS
    with contextlib.suppress(nvml.NVMLError):
        nvml.nvmlInit()
        return _NvmlGpus(nvml, devices)
    return NO_GPUS


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
