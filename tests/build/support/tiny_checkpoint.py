"""Headers of a plain bf16 checkpoint, without files: what the planner sees of one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from roundhouse.build.models.checkpoint import Checkpoint, StoredTensor
from roundhouse.build.models.shape import ModelShape

__all__ = ["TINY", "checkpoint_of"]

TINY: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 1024,
    "max_position_embeddings": 512,
    "dtype": "bfloat16",
}


def checkpoint_of(shape: ModelShape, extra: dict[str, tuple[int, ...]] | None = None) -> Checkpoint:
    """The linears and embeddings of a Llama-like model, with ``extra`` tensors by name."""
    hidden, inner, kv = shape.hidden, shape.intermediate, shape.kv_heads * shape.head_dim
    query = shape.heads * shape.head_dim
    linears = {
        "self_attn.q_proj": (query, hidden),
        "self_attn.k_proj": (kv, hidden),
        "self_attn.v_proj": (kv, hidden),
        "self_attn.o_proj": (hidden, query),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    shapes = {f"model.layers.{n}.{name}.weight": s for n in range(shape.layers) for name, s in linears.items()}
    shapes |= {"model.embed_tokens.weight": (shape.vocab, hidden), "lm_head.weight": (shape.vocab, hidden)} | (extra or {})
    tensors = {name: StoredTensor(name, "BF16", s, 2 * math.prod(s), "model.safetensors") for name, s in shapes.items()}
    return Checkpoint(Path("folder"), ("model.safetensors",), tensors)
