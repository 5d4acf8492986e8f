"""Does a config describe the tensors that lie beside it? Found out before anything is computed from it."""

from __future__ import annotations

import re
from pathlib import Path

from roundhouse.errors import ModelError

from .checkpoint import Checkpoint
from .shape import ModelShape

__all__ = ["check_shapes"]

_PLAIN = ("BF16", "F16", "F32", "F8_E4M3")
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
_BESIDE = ("vision", "visual", "audio", "mtp.")
"""Parts of names outside the language model's own layers."""


def check_shapes(shape: ModelShape, checkpoint: Checkpoint, folder: Path) -> None:
    """Compare stored shapes with what the config says; packed tensors are left to the quantizer's own checks.

    Raises:
        ModelError: with every number that differs, and where it stands.
    """
    wanted, problems, layers = _expected(shape), [], set()
    for tensor in checkpoint.tensors.values():
        if any(part in tensor.name for part in _BESIDE):
            continue
        if found := _LAYER.search(tensor.name):
            layers.add(int(found[1]))
        ending = next((name for name in wanted if tensor.name.endswith(name)), None)
        if ending is None or tensor.dtype not in _PLAIN or len(tensor.shape) != 2:
            continue
        size, axis, told = wanted[ending]
        if tensor.shape[axis] != size:
            problems.append(f"{tensor.name} is {list(tensor.shape)}, config.json makes it {told} = {size}")
    if layers and (missing := sorted(set(range(shape.layers)) - layers)):
        told = f"config.json says num_hidden_layers {shape.layers}"
        problems.append(f"layers {missing[0]} to {missing[-1]} have no tensors, {told}")
    if problems:
        shown = problems[:4] + ([f"and {len(problems) - 4} more"] if len(problems) > 4 else [])
        raise ModelError(
            f"{folder}: config.json does not fit the weights: {'; '.join(shown)}",
            hint="An explicit head_dim in config.json wins over hidden_size / num_attention_heads; download both again.",
        )


def _expected(shape: ModelShape) -> dict[str, tuple[int, int, str]]:
    """Name ending → (size, axis, where the size comes from)."""
    found = {"model.embed_tokens.weight": (shape.hidden, 1, "hidden_size")}
    if shape.latent is not None:
        return found | {"kv_a_proj_with_mqa.weight": (shape.latent.row_elements, 0, "kv_lora_rank + qk_rope_head_dim")}
    query = (shape.heads * shape.head_dim, "num_attention_heads x head_dim")
    key = (shape.kv_heads * shape.head_dim, "num_key_value_heads x head_dim")
    return found | {
        "self_attn.q_proj.weight": (query[0], 0, query[1]),
        "self_attn.o_proj.weight": (query[0], 1, query[1]),
        "self_attn.k_proj.weight": (key[0], 0, key[1]),
        "self_attn.v_proj.weight": (key[0], 0, key[1]),
    }
