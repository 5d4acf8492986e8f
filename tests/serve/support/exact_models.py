"""What an engine's numbers are compared with: transformers in float32, on the weights that the engine computes with."""

from __future__ import annotations

from typing import Any

import torch

from roundhouse.build.engine import Engine
from roundhouse.build.kv_scales import KvScaleReport
from roundhouse.build.reference import plain_model
from roundhouse.build.weights import Tensors, dequantize, quantized_linear

__all__ = ["exact_model"]

_UNUSED_SCALES = KvScaleReport(state="not used")


def exact_model(engine: Engine, *, as_held: bool = False) -> Any:
    """transformers on weights dequantized to float32; the build's own reference rounds them to bf16.

    Args:
        engine: of any weights.
        as_held: round FP8 weights to bf16, as an engine holds them.
    """
    model = plain_model(engine.checkpoint, _UNUSED_SCALES, torch.float32)
    tensors = Tensors(engine.checkpoint)
    for module in [name.removesuffix(".weight_scale") for name in tensors if name.endswith(".weight_scale")]:
        linear = quantized_linear(tensors, module)
        if linear.kind == "int4" or not as_held:
            model.get_submodule(module).weight.data = dequantize(linear).float()
    return model
