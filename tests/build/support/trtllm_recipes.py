"""Recipes for TensorRT-LLM on GPUs of the table, and what their golden files say; run it to write those anew."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from shipped_plans import plan_of_shape

from roundhouse.build.models.shape import InputQuantization
from roundhouse.build.planner.plan import Plan
from roundhouse.build.trtllm.llm_arguments import llm_arguments
from roundhouse.build.trtllm.llm_engine import llm_yaml

__all__ = ["GOLDEN", "LLM_RECIPES", "golden_llm_texts", "llm_plan"]

GOLDEN = Path(__file__).parents[2] / "golden" / "trtllm"

_W4A8_EXPERTS = InputQuantization(
    name="W4A8_AWQ",
    format="int4",
    kernel="w4a8_awq",
    group_size=128,
    bits=4,
    excluded=("*self_attn*", "*shared_experts*", "*mlp.gate", "model.layers.0.mlp*", "*embed_tokens*", "*lm_head*"),
)
"""What DeepSeek's class takes of it: experts in the form of upstream's script, given as they are. Nothing here writes it."""

LLM_RECIPES: dict[str, dict[str, Any]] = {
    "smollm2": {"shape": "smollm2-135m", "gpu": "l40s", "weights": "int4_awq", "kv_cache_tokens": 65536},
    "llama-3.1-70b-tp4": {
        "shape": "llama-3.1-70b",
        "gpu": "h100-80",
        "weights": "int4_awq",
        "tensor_parallel": 4,
        "max_batch_size": 128,
        "max_seq_len": 16384,
        "max_num_tokens": 8192,
    },
    "qwen3-30b-a3b": {
        "shape": "qwen3-30b-a3b",
        "gpu": "h200",
        "weights": "w4a8_awq",
        "tensor_parallel": 2,
        "expert_parallel": 2,
        "max_num_tokens": 8192,
        "max_seq_len": 32768,
        "memory_fraction": 0.8,
        "target_options": {"kv_cache_config.event_buffer_max_size": 1024, "stream_interval": 4},
    },
    "qwen3-30b-a3b-attention-dp": {
        "shape": "qwen3-30b-a3b",
        "gpu": "h200",
        "weights": "fp8",
        "kv_cache": "bf16",
        "guard": "off",
        "tensor_parallel": 4,
        "expert_parallel": 4,
        "attention_data_parallel": True,
        "max_batch_size": 250,
    },
    "kimi-k2.6-decode-tp8": {
        "shape": "kimi-k2.6@bf16",
        "quantized": _W4A8_EXPERTS,
        "guard": "off",
        "gpu": "h200",
        "role": "decode",
        "weights": "as_is",
        "tensor_parallel": 8,
        "expert_parallel": 8,
        "max_batch_size": 256,
        "max_seq_len": 65536,
        "max_num_tokens": 4096,
    },
    "kimi-k2.6-prefill-tp8": {
        "shape": "kimi-k2.6@bf16",
        "guard": "off",
        "gpu": "b200",
        "role": "prefill",
        "weights": "fp8",
        "kv_cache": "bf16",
        "tensor_parallel": 8,
        "expert_parallel": 8,
        "max_batch_size": 16,
        "max_seq_len": 65536,
        "max_num_tokens": 16384,
    },
    "glm-5.2-tp8": {
        "shape": "glm-5.2",
        "guard": "off",
        "gpu": "h200",
        "weights": "fp8",
        "tensor_parallel": 8,
        "expert_parallel": 8,
        "max_batch_size": 64,
        "max_seq_len": 131072,
        "max_num_tokens": 8192,
        "kv_cache_bytes": 24 * 2**30,
    },
}
"""Recipe keys for the target `trtllm-pytorch`, with the shape and the GPU that they are planned for.

``quantized`` is what the shape is quantized to already.
"""


def llm_plan(name: str, **changes: Any) -> Plan:
    """The plan of a recipe of the table, with other keys where they are given."""
    keys = {**LLM_RECIPES[name], **changes}
    return plan_of_shape(keys.pop("shape"), keys.pop("gpu"), target="trtllm-pytorch", **keys)


def golden_llm_texts() -> dict[Path, str]:
    """Every golden file of LLM arguments, as it should be."""
    plans = {name: llm_plan(name) for name in LLM_RECIPES}
    return {GOLDEN / f"llm-{name}.yaml": llm_yaml(plan, llm_arguments(plan)) for name, plan in plans.items()}


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for path, text in golden_llm_texts().items():
        path.write_text(text)
        sys.stdout.write(f"{path}\n")
