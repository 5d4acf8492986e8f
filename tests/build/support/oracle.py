"""Transformers' own idea of a model, to compare the planner's with: modules on the meta device, so nothing takes memory."""

from __future__ import annotations

import math
import re
from typing import Any

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.shape import ModelShape

__all__ = ["EXPERTS", "FAMILIES", "LATENT", "TINY_MODEL", "config_of", "kinds_of", "model_of", "shape_like", "total_of"]

TINY_MODEL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
LATENT = {"q_lora_rank": 8, "kv_lora_rank": 12, "qk_nope_head_dim": 10, "qk_rope_head_dim": 4, "v_head_dim": 6}
_ROUTED = {**EXPERTS, "n_routed_experts": 4, "n_shared_experts": 2, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1}
_SPARSE = {"index_n_heads": 2, "index_head_dim": 8, "index_topk": 4}

FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"head_dim": 16},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2": {},
    "qwen2_moe": {**EXPERTS, "num_experts": 4, "shared_expert_intermediate_size": 24, "mlp_only_layers": [1]},
    "qwen3": {"head_dim": 16},
    "qwen3_moe": {**EXPERTS, "head_dim": 16, "num_experts": 4, "decoder_sparse_step": 2},
    "gemma3_text": {"head_dim": 16, "sliding_window": 8, "num_hidden_layers": 7},
    "gpt_oss": {"head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8},
    "glm4_moe": {**_ROUTED, "head_dim": 16},
    "deepseek_v2": {**_ROUTED, **LATENT},
    "deepseek_v3": {**_ROUTED, **LATENT},
    "deepseek_v32": {**_ROUTED, **LATENT, **_SPARSE},
    "glm_moe_dsa": {**_ROUTED, **LATENT, **_SPARSE, "num_hidden_layers": 8, "index_topk_freq": 3, "index_skip_topk_offset": 1},
}
"""``model_type`` → what makes a small model of it, with as many of the family's features as it has."""


def config_of(family: str, **changes: Any) -> Any:
    """Transformers' config of a small model."""
    from transformers import AutoConfig

    return AutoConfig.for_model(family, **{**TINY_MODEL, **FAMILIES.get(family, {}), **changes})


def model_of(config: Any) -> Any:
    """Transformers' modules for a config, without memory."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def shape_like(config: Any, architecture: str) -> ModelShape:
    """The planner's reading of what transformers would write to ``config.json``."""
    return shape_from_config({**config.to_dict(), "architectures": [architecture]}, stored_dtype="bfloat16")


def total_of(kinds: dict[tuple[str, tuple[int, ...]], int]) -> int:
    """Elements of everything that :func:`kinds_of` found."""
    return sum(math.prod(shape) * number for (_, shape), number in kinds.items())


def kinds_of(model: Any) -> dict[tuple[str, tuple[int, ...]], int]:
    """(name with numbers as ``*``, shape) → how many, over parameters and stored buffers; what is tied counts once."""
    found: dict[tuple[str, tuple[int, ...]], int] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            kind = re.sub(r"\.\d+\.", ".*.", name), tuple(tensor.shape)
            found[kind] = found.get(kind, 0) + 1
    return found
