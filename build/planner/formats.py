"""How weights are stored: bytes of one linear in each format, scales included."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["BF16", "FP8", "FP8_BLOCK", "MXFP4", "NVFP4", "WeightFormat", "format_called", "int4"]

BLOCK = 128


@dataclass(frozen=True)
class WeightFormat:
    """A way to store the weight of a linear.

    ``bits`` an element; one scale of ``scale_bytes`` for each ``group`` inputs of each of ``scale_rows`` outputs;
    ``scalar_bytes`` once a tensor; ``input_scale_bytes`` for each input channel of modules that keep an input scale.
    """

    name: str
    bits: int
    group: int | None = None
    scale_rows: int = 1
    scale_bytes: int = 0
    scalar_bytes: int = 0
    input_scale_bytes: int = 0

    def bytes(self, outputs: int, inputs: int, *, input_scaled: bool = False) -> int:
        """Bytes of an [outputs, inputs] weight; a last group or block that is not full still has a scale."""
        scales = 0 if self.group is None else math.ceil(outputs / self.scale_rows) * math.ceil(inputs / self.group)
        input_scale = self.input_scale_bytes * inputs if input_scaled else 0
        return math.ceil(outputs * inputs * self.bits / 8) + scales * self.scale_bytes + self.scalar_bytes + input_scale


BF16 = WeightFormat("bf16", 16)
FP8 = WeightFormat("fp8", 8, scalar_bytes=2 * 4)
"""As ModelOpt writes it: one float32 weight scale and one input scale a tensor."""
FP8_BLOCK = WeightFormat("fp8_block", 8, group=BLOCK, scale_rows=BLOCK, scale_bytes=4)
"""DeepSeek's: a float32 scale for each block of 128 by 128."""
NVFP4 = WeightFormat("nvfp4", 4, group=16, scale_bytes=1, scalar_bytes=2 * 4)
MXFP4 = WeightFormat("mxfp4", 4, group=32, scale_bytes=1)


def int4(group: int | None, *, scale_bytes: int = 2, input_scales: bool = False) -> WeightFormat:
    """INT4 with a scale for each ``group`` inputs (None: not known yet, scales are not counted)."""
    return WeightFormat("int4", 4, group, scale_bytes=scale_bytes, input_scale_bytes=2 if input_scales else 0)


def format_called(name: str, group: int | None = None) -> WeightFormat:
    """A format as configs of already quantized inputs call it: scales as 16-bit numbers beside INT4 weights."""
    if name == "int4":
        return int4(group)
    return {"bf16": BF16, "fp8": FP8, "fp8_block": FP8_BLOCK, "nvfp4": NVFP4, "mxfp4": MXFP4}[name]
