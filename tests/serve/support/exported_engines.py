"""Engines that are exported, and what their golden files say; run it to write those anew."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from built import manifest_of
from engine_configs import engine_config
from shipped_plans import plan_of_shape
from trtllm_recipes import LLM_RECIPES

from roundhouse.build.compiled import Compiled
from roundhouse.build.engine import Engine, FileRecord
from roundhouse.build.planner.plan import Plan
from roundhouse.build.trtllm.llm_arguments import llm_arguments
from roundhouse.build.trtllm.llm_engine import LLM_FILE, llm_yaml
from roundhouse.serve.export.choosing import Server, container_of
from roundhouse.serve.export.compose import compose_text
from roundhouse.serve.export.dashboard import dashboard_text
from roundhouse.serve.export.kubernetes import Manifests, resource_name

__all__ = ["GOLDEN", "exported", "golden_texts"]

GOLDEN = Path(__file__).parents[2] / "golden" / "export"
_ENGINES = Path("/srv/roundhouse/engines")


def exported(name: str, place: Path) -> Engine:
    """An engine of the table, as a build would leave it; of its files only what exports read of compiled engines is there.

    Args:
        name: in the table.
        place: the folder for engines.
    """
    shape, gpu, keys = _TABLE[name]
    plan = plan_of_shape(shape, gpu, name=name, **keys)
    folder = place / f"{sum(name.encode()):016x}"
    compiled = _compiled(plan)
    if compiled is not None:
        written = folder / compiled.folder
        written.mkdir(parents=True, exist_ok=True)
        if plan.recipe.target == "tensorrt":
            (written / "config.json").write_text(json.dumps(_engine_config(plan)))
        else:
            (written / LLM_FILE).write_text(llm_yaml(plan, llm_arguments(plan)))
    manifest = manifest_of(
        folder.name,
        name,
        recipe=plan.recipe,
        plan=plan,
        compiled=compiled,
        files={"checkpoint/model.safetensors": FileRecord(bytes=plan.checkpoint_bytes, sha256="cd" * 32)},
    )
    return Engine(folder, manifest)


def golden_texts(place: Path) -> dict[Path, str]:
    """Every golden file of the exports, as it should be; arguments as :func:`exported`."""
    found = {GOLDEN / "dashboard.json": dashboard_text()}
    for called, (name, server) in _EXPORTS.items():
        engine = exported(name, place)
        container, folder = container_of(engine, server=server), _ENGINES / engine.folder.name
        found[GOLDEN / f"{called}.compose.yaml"] = compose_text(container, folder)
        found[GOLDEN / f"{called}.kubernetes.yaml"] = Manifests(container, resource_name(name)).text(folder)
    return found


def _compiled(plan: Plan) -> Compiled | None:
    if plan.recipe.target == "torch":
        return None
    return Compiled(
        versions={"tensorrt_llm": "1.2.1"},
        compute_capability=plan.hardware.compute_capability,
        tensor_parallel=plan.recipe.tensor_parallel,
        pipeline_parallel=plan.recipe.pipeline_parallel,
        guard=None,
        options={},
    )


def _engine_config(plan: Plan) -> dict[str, Any]:
    shape, recipe = plan.shape, plan.recipe
    limits = {
        "max_input_len": plan.max_seq_len,
        "max_seq_len": plan.max_seq_len,
        "max_batch_size": recipe.max_batch_size,
        "max_num_tokens": recipe.max_num_tokens,
    }
    model = {
        "dtype": "bfloat16",
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_size": shape.head_dim,
        "quantization": {"kv_cache_quant_algo": "FP8" if recipe.kv_cache == "fp8" else None},
    }
    plugins = {"tokens_per_block": recipe.page_tokens}
    return engine_config(tp=recipe.tensor_parallel, pp=recipe.pipeline_parallel, model=model, build=limits, plugins=plugins)


def _recorded(name: str) -> tuple[str, str, dict[str, Any]]:
    keys = {"target": "trtllm-pytorch", **LLM_RECIPES[name]}
    return keys.pop("shape"), keys.pop("gpu"), keys


_TABLE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "smollm2": ("smollm2-135m", "h200", {"target": "torch", "max_batch_size": 16, "max_seq_len": 2048}),
    "Llama-3.1-70B": ("llama-3.1-70b", "h200", {"target": "tensorrt", "tensor_parallel": 4}),
    "qwen3-30b-a3b": _recorded("qwen3-30b-a3b"),
    "kimi-k2.6": _recorded("kimi-k2.6-decode-tp8"),
    "unguarded": _recorded("qwen3-30b-a3b-attention-dp"),
}
"""Shape, GPU and recipe keys, by the engine's name."""

_EXPORTS: dict[str, tuple[str, Server]] = {
    "torch": ("smollm2", "triton"),
    "tensorrt": ("Llama-3.1-70B", "triton"),
    "trtllm-pytorch": ("qwen3-30b-a3b", "triton"),
    "trtllm-pytorch-8-gpus": ("kimi-k2.6", "triton"),
    "trtllm-serve": ("qwen3-30b-a3b", "trtllm-serve"),
    "trtllm-serve-unguarded": ("unguarded", "trtllm-serve"),
}
"""Engine and server, by what the golden files are called."""


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        for path, text in golden_texts(Path(temporary)).items():
            path.write_text(text)
            sys.stdout.write(f"{path}\n")
