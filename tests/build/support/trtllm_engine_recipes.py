"""Recipes for TensorRT-LLM's engines on GPUs of the table, and what their golden files say; run it to write those anew."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.models.shipped import shipped_config
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.recipe import recipe_from
from roundhouse.build.trtllm.checkpoint_config import checkpoint_config
from roundhouse.build.trtllm.engine_config import build_config

__all__ = ["ENGINE_RECIPES", "GOLDEN", "engine_plan", "golden_engine_text", "published_config"]

GOLDEN = Path(__file__).parents[2] / "golden" / "trtllm"

_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
_PUBLISHED: dict[str, dict[str, Any]] = {
    "smollm2-135m": {"rms_norm_eps": 1e-05, "rope_theta": 100000},
    "llama-3.1-70b": {"rms_norm_eps": 1e-05, "rope_theta": 500000.0, "rope_scaling": _LLAMA3},
    "qwen3-8b": {"rms_norm_eps": 1e-06, "rope_theta": 1000000, "attention_bias": False},
}
"""Keys of the published configs that plans do not need, and engines do."""

ENGINE_RECIPES: dict[str, dict[str, Any]] = {
    "smollm2": {"shape": "smollm2-135m", "gpu": "L40S", "kv_cache": "bf16", "max_num_tokens": 2048},
    "llama-3.1-70b-tp4": {
        "shape": "llama-3.1-70b",
        "gpu": "H100-80-SXM",
        "tensor_parallel": 4,
        "max_batch_size": 128,
        "max_seq_len": 16384,
        "max_num_tokens": 16384,
    },
    "llama-3.1-70b-tp2-pp2-fp8": {
        "shape": "llama-3.1-70b",
        "gpu": "H100-80-SXM",
        "weights": "fp8",
        "tensor_parallel": 2,
        "pipeline_parallel": 2,
        "max_seq_len": 16384,
        "page_tokens": 64,
        "target_options": {"plugin_config.gemm_plugin": "auto", "plugin_config.reduce_fusion": True, "opt_num_tokens": 512},
    },
    "qwen3-8b": {"shape": "qwen3-8b", "gpu": "H200", "weights": "fp8", "max_seq_len": 32768, "max_num_tokens": 8192},
    "qwen3-8b-bf16": {"shape": "qwen3-8b", "gpu": "H200", "weights": "bf16", "kv_cache": "bf16", "guard": "off"},
}


def published_config(shape: str) -> dict[str, Any]:
    """The ``config.json`` of a shipped shape's model, as far as engines read it."""
    return {**shipped_config(shape), **_PUBLISHED[shape]}


def engine_plan(name: str) -> Plan:
    """The plan of a recipe of the table."""
    keys = dict(ENGINE_RECIPES[name])
    source, gpu = keys.pop("shape"), keys.pop("gpu")
    shape = shape_from_config(published_config(source), stored_dtype=None)
    recipe = recipe_from({"model": f"shape:{source}", "target": "tensorrt", **keys})
    return make_plan(recipe, shape, inventory_from_shape(shape), hardware_called(gpu))


def golden_engine_text(name: str) -> str:
    """What TensorRT-LLM is given for a recipe: the checkpoint's config, and the builder's."""
    plan = engine_plan(name)
    config = published_config(ENGINE_RECIPES[name]["shape"])
    given = {
        "checkpoint": checkpoint_config(config, plan.shape, plan.recipe, plan.group_size),
        "build": build_config(plan),
    }
    return json.dumps(given, indent=2) + "\n"


if __name__ == "__main__":
    for each in ENGINE_RECIPES:
        (GOLDEN / f"engine-{each}.json").write_text(golden_engine_text(each))
        sys.stdout.write(f"engine-{each}.json\n")
