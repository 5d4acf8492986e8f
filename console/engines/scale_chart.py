"""The KV scales of an engine as bars, one pair for each layer. Lengths are percent, heights pixels."""

from __future__ import annotations

from dataclasses import dataclass

from roundhouse.build.kv_scales import KvScaleReport

__all__ = ["HEIGHT", "ScaleBar", "ScaleChart", "scale_chart"]

HEIGHT = 140
"""Pixels of the greatest scale."""
_GAP = 0.25
"""Share of a layer's room that is left empty."""


@dataclass(frozen=True)
class ScaleBar:
    """One scale."""

    kind: str
    """``k`` or ``v``."""
    layer: int
    value: float
    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True)
class ScaleChart:
    """All of them."""

    bars: tuple[ScaleBar, ...]
    most: float
    """What the greatest height stands for."""
    layers: int


def scale_chart(scales: KvScaleReport) -> ScaleChart | None:
    """Lay the scales out; None where there are none."""
    values = {"k": scales.k, "v": scales.v}
    most = max((*scales.k, *scales.v), default=0.0)
    layers = max(len(scales.k), len(scales.v))
    if not layers or most <= 0:
        return None
    room = 100 / layers
    width = round(room * (1 - _GAP) / 2, 4)
    bars = []
    for offset, (kind, numbers) in enumerate(values.items()):
        for layer, value in enumerate(numbers):
            height = round(HEIGHT * value / most, 2)
            x = round(layer * room + room * _GAP / 2 + offset * width, 4)
            bars.append(ScaleBar(kind, layer, value, x, width, round(HEIGHT - height, 2), height))
    return ScaleChart(tuple(bars), most, layers)
