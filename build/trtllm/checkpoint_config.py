"""``config.json`` of a TensorRT-LLM checkpoint, from a model's own config and what it was quantized to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roundhouse.errors import BuildError

from ..models.nested_config import language_model_config
from ..models.shape import ModelShape
from ..recipe import Recipe

__all__ = ["FAMILIES", "checkpoint_config"]

FAMILIES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
}
"""Architectures that are converted, and what upstream's config classes (``LLaMAConfig``, ``QWenConfig``) take them for."""

_ALGORITHMS = {"bf16": None, "fp8": "FP8", "int4_awq": "W4A16_AWQ"}
"""Weights that this package quantizes, as ``QuantAlgo`` calls them."""
_SCALED_ROPE = ("linear", "llama3")
"""Kinds of rotary embedding that upstream's ``create_sinusoidal_positions_for_attention_plugin`` scales; of others it takes
the kind and computes none of it."""
_QWEN_SEQ_LENGTH = 8192
"""What ``QWenConfig`` has where a model does not say; only logarithmic attention scaling reads it, which is off."""


def checkpoint_config(config: Mapping[str, Any], shape: ModelShape, recipe: Recipe, group: int | None) -> dict[str, Any]:
    """What upstream's ``PretrainedConfig`` and its classes for Llama and Qwen read.

    Args:
        config: the model's ``config.json``.
        shape: what was read of it.
        recipe: weights, KV and ranks.
        group: INT4 group size, or None.

    Raises:
        BuildError: the model has something that upstream's engine path, or this conversion of it, has not.
    """
    merged, _ = language_model_config(dict(config), "config.json")
    family = FAMILIES.get(shape.architecture)
    if family is None:
        why = "mixture-of-experts models are not converted" if shape.moe else f"known are {', '.join(FAMILIES)}"
        raise BuildError(f"{shape.architecture} cannot be made into a TensorRT-LLM checkpoint: {why}", hint=_OTHER_TARGET)
    if recipe.weights not in _ALGORITHMS:
        raise BuildError(f"weights {recipe.weights} are not converted for the tensorrt target", hint=_OTHER_TARGET)
    found: dict[str, Any] = {
        "architecture": shape.architecture,
        "dtype": "bfloat16",
        "logits_dtype": "float32",
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "head_size": shape.head_dim,
        "norm_epsilon": merged.get("rms_norm_eps", 1e-6),
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.max_positions,
        "hidden_act": merged.get("hidden_act", "silu"),
        "position_embedding_type": "rope_gpt_neox",
        "use_parallel_embedding": False,
        "embedding_sharding_dim": 0,
        "attn_bias": shape.attention_bias if shape.attention_bias is not None else family == "qwen2",
        "mlp_bias": shape.mlp_bias,
        **_rotary(merged, shape),
        "mapping": {
            "world_size": recipe.tensor_parallel * recipe.pipeline_parallel,
            "tp_size": recipe.tensor_parallel,
            "pp_size": recipe.pipeline_parallel,
        },
        "quantization": _quantization(recipe, group),
    }
    if family != "llama":
        found |= {"qwen_type": family, "seq_length": _QWEN_SEQ_LENGTH, "qk_layernorm": family == "qwen3"}
    return found


_OTHER_TARGET = "The trtllm-pytorch target reads checkpoints of more models and formats."


def _rotary(config: Mapping[str, Any], shape: ModelShape) -> dict[str, Any]:
    given = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    base = given.pop("rope_theta", None) or config.get("rope_theta") or 10000.0
    if shape.rope not in ("default", *_SCALED_ROPE):
        raise BuildError(
            f"rotary embedding {shape.rope}: TensorRT-LLM's engine path computes {', '.join(_SCALED_ROPE)} and unscaled ones",
            hint=_OTHER_TARGET,
        )
    if shape.rope == "default":
        return {"rotary_base": float(base), "rotary_scaling": None}
    given.pop("type", None)
    return {"rotary_base": float(base), "rotary_scaling": {**given, "rope_type": shape.rope}}


def _quantization(recipe: Recipe, group: int | None) -> dict[str, Any]:
    """``QuantConfig``. Its own list of excluded modules counts only where none is given."""
    algorithm = _ALGORITHMS[recipe.weights]
    found: dict[str, Any] = {
        "quant_algo": algorithm,
        "kv_cache_quant_algo": "FP8" if recipe.kv_cache == "fp8" else None,
    }
    if algorithm == "W4A16_AWQ":
        found |= {"group_size": group, "has_zero_point": False, "pre_quant_scale": True}
    if algorithm is not None:
        found["exclude_modules"] = ["lm_head"]
    return found
