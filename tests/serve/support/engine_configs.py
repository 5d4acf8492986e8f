"""An engine's ``config.json`` as TensorRT-LLM 1.2.1 writes it, as far as a runtime reads it, and an engine folder around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from roundhouse.build.compiled import COMPILED, Compiled, CompiledGuard
from roundhouse.build.engine import CHECKPOINT, Engine
from roundhouse.build.planner.kv_layout import layout_for
from roundhouse.serve.runtimes.tensorrt_llm.geometry import EngineGeometry
from roundhouse.serve.runtimes.tensorrt_llm.ranks import rank_parts


def engine_config(
    *,
    tp: int = 1,
    pp: int = 1,
    model: dict[str, Any] | None = None,
    build: dict[str, Any] | None = None,
    plugins: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Of the tiny models of the tests: two layers, four heads of 32 elements that share two of keys and values."""
    return {
        "version": "1.2.1",
        "pretrained_config": {
            "architecture": "LlamaForCausalLM",
            "dtype": "float32",
            "logits_dtype": "float32",
            "vocab_size": 512,
            "hidden_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_size": 32,
            "mapping": {"world_size": tp * pp, "tp_size": tp, "pp_size": pp, "cp_size": 1, "gpus_per_node": 8},
            "quantization": {"quant_algo": None, "kv_cache_quant_algo": None},
            **(model or {}),
        },
        "build_config": {
            "max_input_len": 128,
            "max_seq_len": 128,
            "max_batch_size": 8,
            "max_num_tokens": 64,
            "max_beam_width": 1,
            "kv_cache_type": "PAGED",
            "gather_context_logits": False,
            "max_draft_len": 0,
            "plugin_config": {
                "tokens_per_block": 8,
                "use_paged_context_fmha": True,
                "context_fmha": True,
                "remove_input_padding": True,
                "multiple_profiles": False,
                **(plugins or {}),
            },
            **(build or {}),
        },
    }


def geometry(**changes: Any) -> EngineGeometry:
    """The same, read."""
    return EngineGeometry.model_validate(engine_config(**changes))


def compiled_engine(engine: Engine, folder: Path, *, guard: CompiledGuard | None = None, **config: Any) -> Engine:
    """An engine with the checkpoint of another, as the target ``tensorrt`` would have compiled it: without the engines."""
    described = geometry(**config)
    mapping = described.pretrained_config.mapping
    compiled = Compiled(
        versions={"tensorrt_llm": "1.2.1", "tensorrt": "10.14.1.48"},
        compute_capability="9.0",
        tensor_parallel=mapping.tp_size,
        pipeline_parallel=mapping.pp_size,
        guard=guard,
        options={},
    )
    (folder / COMPILED).mkdir()
    (folder / COMPILED / "config.json").write_text(json.dumps(engine_config(**config)))
    (folder / CHECKPOINT).symlink_to(engine.checkpoint)
    manifest = engine.manifest
    recipe = manifest.recipe.model_copy(update={"target": "tensorrt"})
    layers = rank_parts(described)[0].layers
    layout = layout_for(manifest.plan.shape, "float32", kv_heads=described.kv_heads, layers=layers)
    plan = manifest.plan.model_copy(update={"kv_layout": layout})
    changes = {"recipe": recipe, "plan": plan, "compiled": compiled, "files": {}}
    return Engine(folder, manifest.model_copy(update=changes))
