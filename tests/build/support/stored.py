"""Checkpoints given as tensors, and what the planner makes of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tiny_checkpoint import TINY

from roundhouse.build.models.checkpoint import Checkpoint, StoredTensor
from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.parameters import Inventory, Parameter
from roundhouse.build.models.shape import ModelShape
from roundhouse.build.models.stored_inventory import inventory_from_checkpoint

__all__ = ["BITS", "EXPERTS", "HIDDEN", "INNER", "MOE", "Dims", "Tensors", "in_layers", "only", "read", "shape_of", "stored"]

HIDDEN, INNER, EXPERTS = 256, 384, 4
CONFIG: dict[str, Any] = {**TINY, "model_type": "llama"}
MOE = {"num_experts": EXPERTS, "num_experts_per_tok": 2, "moe_intermediate_size": INNER}
BITS = {"BF16": 16, "F16": 16, "F32": 32, "I32": 32, "I64": 64, "U8": 8, "F8_E4M3": 8}

Dims = tuple[int, ...]
Tensors = dict[str, tuple[str, Dims]]
"""Name → (safetensors dtype, shape)."""


def stored(tensors: Tensors) -> Checkpoint:
    """A checkpoint of tensors given as name → (dtype, shape)."""
    made = {
        name: StoredTensor(name, dtype, dims, math.prod(dims) * BITS[dtype] // 8, "model.safetensors")
        for name, (dtype, dims) in tensors.items()
    }
    return Checkpoint(Path("folder"), ("model.safetensors",), made)


def shape_of(**changes: Any) -> ModelShape:
    return shape_from_config(CONFIG | changes, stored_dtype="bfloat16")


def read(tensors: Tensors, **changes: Any) -> Inventory:
    """The inventory of some tensors; every byte of them is in it."""
    checkpoint = stored(tensors)
    found = inventory_from_checkpoint(shape_of(**changes), checkpoint)
    assert found.stored_bytes == checkpoint.tensor_bytes
    assert found.from_files
    return found


def only(found: Inventory) -> Parameter:
    (parameter,) = found.parameters
    return parameter


def in_layers(tensors: Tensors, module: str = "self_attn.o_proj") -> Tensors:
    """The tensors of one module, in each of two layers."""
    return {f"model.layers.{n}.{module}.{name}": tensor for n in range(2) for name, tensor in tensors.items()}
