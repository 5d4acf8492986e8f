"""What GPUs did during a point, from what they said meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from ..measurement.gpus import GpuReading
from .points import GpuUse

__all__ = ["gpu_use"]


def gpu_use(names: Sequence[str], readings: Sequence[tuple[GpuReading, ...]]) -> tuple[GpuUse, ...]:
    """Sum up the readings of a point, the oldest first: one at its beginning, one at its end, any in between."""
    uses = []
    for index, (name, each) in enumerate(zip(names, zip(*readings, strict=True), strict=False)):
        first, last = each[0].energy_j, each[-1].energy_j
        # The first reading is of the time before.
        utilization = [reading.utilization for reading in each[1:] if reading.utilization is not None]
        uses.append(
            GpuUse(
                index=index,
                name=name,
                memory_used_most=max(reading.memory_used for reading in each),
                energy_j=None if first is None or last is None else max(0.0, last - first),
                utilization_mean=sum(utilization) / len(utilization) if utilization else None,
            )
        )
    return tuple(uses)
