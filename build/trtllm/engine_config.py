"""``BuildConfig`` of a plan: what TensorRT-LLM's builder is told beside the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..merging import merged
from ..planner.plan import Plan
from .options import nested_options

__all__ = ["build_config", "cuts_prompts"]

_FP8_ATTENTION = ("8.9", "9.0", "10.0", "10.3", "12.0")
"""Compute capabilities whose context attention reads an FP8 cache."""


def build_config(plan: Plan) -> dict[str, Any]:
    """The keys that differ from upstream's defaults, and those that our runtime relies on; with the recipe's own on top.

    Context attention's switches are written as the builder would set them anyway, so that an engine's config says what it does.
    """
    recipe = plan.recipe
    # FP8 attention needs both; of a 16-bit cache the builder takes FP8 weights with 16-bit attention.
    fp8_attention = recipe.weights == recipe.kv_cache == "fp8" and plan.hardware.compute_capability in _FP8_ATTENTION
    config: dict[str, Any] = {
        # No prompt is refused for its length alone: upstream's default is 1024.
        "max_input_len": plan.max_seq_len,
        "max_seq_len": plan.max_seq_len,
        "max_batch_size": recipe.max_batch_size,
        "max_num_tokens": recipe.max_num_tokens,
        "max_beam_width": 1,
        "kv_cache_type": "paged",
        "strongly_typed": True,
        "plugin_config": {
            "dtype": "bfloat16",
            "gpt_attention_plugin": "auto",
            "remove_input_padding": True,
            "paged_kv_cache": True,
            "tokens_per_block": plan.page_tokens,
            "use_paged_context_fmha": recipe.kv_cache == "bf16" or fp8_attention,
            "use_fp8_context_fmha": fp8_attention,
            # Upstream's own command line leaves gate and up apart for every quantization that it cannot fuse.
            "use_fused_mlp": recipe.weights in ("bf16", "fp8"),
        },
    }
    return merged(config, nested_options(recipe.target_options))


def cuts_prompts(config: Mapping[str, Any]) -> bool:
    """Whether the engine takes a prompt in parts, and reads what an earlier one left: both need paged context attention.

    Args:
        config: ``build_config`` of the engine's own ``config.json``: the builder turns off what it cannot have.
    """
    return bool(config["plugin_config"]["use_paged_context_fmha"])
