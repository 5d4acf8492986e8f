"""Which tensors a recipe quantizes, and exactly how many bytes each one becomes, on disk and in memory."""

from __future__ import annotations

import math

from ..models.checkpoint import StoredTensor
from ..models.shape import ModelShape
from ..recipe import Recipe

__all__ = ["checkpoint_bytes", "held_bytes", "is_quantized", "is_tied_head"]

_UNQUANTIZED_PARTS = ("embed_tokens", "lm_head", "norm")
_INPUT_SCALED_MODULES = ("o_proj", "down_proj")
"""Modules whose AWQ scale stays with them; the others' is folded into the norm before them."""


def is_quantized(tensor: StoredTensor, recipe: Recipe) -> bool:
    """Whether the recipe quantizes this tensor: every linear's weight but embeddings and lm_head."""
    if recipe.weights == "bf16" or len(tensor.shape) != 2 or not tensor.name.endswith(".weight"):
        return False
    return not any(part in tensor.name for part in _UNQUANTIZED_PARTS)


def checkpoint_bytes(recipe: Recipe, shape: ModelShape, weights: list[StoredTensor], group: int | None) -> int:
    """Bytes of the tensors that ModelOpt's export writes."""
    total = 0
    for tensor in weights:
        elements = math.prod(tensor.shape)
        if not is_quantized(tensor, recipe):
            total += 2 * elements
        elif recipe.weights == "int4_awq":
            total += _int4_bytes(tensor, group)
        else:
            total += elements + 2 * 4  # FP8: one float32 weight scale and one input scale
    if recipe.kv_cache == "fp8":
        total += 2 * 4 * shape.layers
    return total


def held_bytes(tensor: StoredTensor, recipe: Recipe, group: int | None) -> int:
    """Bytes the torch runtime holds for this tensor: INT4 stays packed, everything else is BF16."""
    if is_quantized(tensor, recipe) and recipe.weights == "int4_awq":
        return _int4_bytes(tensor, group)
    return 2 * math.prod(tensor.shape)


def _int4_bytes(tensor: StoredTensor, group: int | None) -> int:
    """Half a byte a weight, four bytes a group of scales, two bytes a channel for an input scale."""
    rows, columns = tensor.shape
    scales = rows * math.ceil(columns / group) * 4 if group else 0
    module = tensor.name.removesuffix(".weight").rsplit(".", 1)[-1]
    input_scale = 2 * columns if module in _INPUT_SCALED_MODULES else 0
    return rows * columns // 2 + scales + input_scale


def is_tied_head(tensor: StoredTensor, shape: ModelShape) -> bool:
    """Whether this tensor is an output head that is the embedding again: written, held and counted once."""
    return shape.tied_embeddings and tensor.name == "lm_head.weight"
