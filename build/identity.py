"""Which engine a recipe makes: the id is a hash of everything that changes the engine's bytes."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from typing import Any

from .memory import Arithmetic
from .planner.plan import Plan
from .recipe import Recipe
from .trtllm.interpreter import version_there
from .trtllm.upstream import upstream

__all__ = ["SPEED_KEYS", "engine_id", "versions"]

_BYTE_KEYS = (
    "target",
    "role",
    "weights",
    "quantize_scope",
    "activations",
    "lm_head",
    "kv_cache",
    "kv_layout",
    "tensor_parallel",
    "pipeline_parallel",
    "expert_parallel",
    "attention_data_parallel",
    "seed",
    "target_options",
)
"""Recipe keys that change what is written on the torch target; the others are defaults that `serve` may override."""
_COMPILED_KEYS = (
    "guard",
    "page_tokens",
    "max_batch_size",
    "max_num_tokens",
    "memory_fraction",
    "kv_cache_bytes",
    "kv_cache_tokens",
)
"""Those that change what the targets of TensorRT-LLM compile, or write down for it, beside the plan's own decisions."""
SPEED_KEYS = tuple(key for key in _BYTE_KEYS if key not in ("seed", "role"))
"""Of these, what decides how fast an engine is; its group size is decided by the plan."""

_PACKAGES = ("nvidia-modelopt", "torch", "transformers", "safetensors")


def versions() -> dict[str, str]:
    """Versions of what shapes an engine's bytes."""
    return {"roundhouse-llm": version("roundhouse-llm"), **{name: version(name) for name in _PACKAGES}}


def engine_id(recipe: Recipe, plan: Plan, *, model_fingerprint: str, calibration_text: str, arithmetic: Arithmetic) -> str:
    """16 hex digits: equal inputs give equal ids, so the same engine is never built twice."""
    inputs: dict[str, Any] = {key: recipe.model_dump(mode="json")[key] for key in _BYTE_KEYS}
    inputs["group_size"] = plan.group_size
    inputs["calibration"] = recipe.calibration.model_dump(mode="json", exclude={"text", "arithmetic"})
    inputs["arithmetic"] = arithmetic
    inputs["calibration_text"] = hashlib.sha256(calibration_text.encode()).hexdigest()
    inputs["model"] = model_fingerprint
    inputs["versions"] = versions()
    if recipe.target != "torch":
        inputs["compiled"] = {key: recipe.model_dump(mode="json")[key] for key in _COMPILED_KEYS}
        inputs["compiled"] |= {"max_seq_len": plan.max_seq_len, "sm": plan.hardware.compute_capability}
        # The engines are those of the TensorRT-LLM that builds them; the PyTorch backend's arguments of the recorded one.
        inputs["tensorrt_llm"] = version_there() if recipe.target == "tensorrt" else upstream().version
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]
