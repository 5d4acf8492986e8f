"""What our build writes for TensorRT-LLM, as the runtime reads it: ranks, pages and limits are those of the plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shipped_plans import plan_of_shape

from roundhouse.build.trtllm.checkpoint import padded_vocab
from roundhouse.build.trtllm.checkpoint_config import checkpoint_config
from roundhouse.build.trtllm.engine_config import build_config, cuts_prompts
from roundhouse.build.trtllm.ranks import ranks
from roundhouse.serve.runtimes.tensorrt_llm.geometry import read_geometry
from roundhouse.serve.runtimes.tensorrt_llm.ranks import page_bytes, rank_parts

RECIPES: list[tuple[str, str, dict[str, Any]]] = [
    ("smollm2-135m", "l40s", {"weights": "bf16", "kv_cache": "bf16"}),
    ("smollm2-135m", "l40s", {"weights": "int4_awq", "kv_cache": "fp8", "pipeline_parallel": 4}),
    ("llama-3.1-70b", "h100-80", {"weights": "int4_awq", "kv_cache": "fp8", "tensor_parallel": 4, "max_seq_len": 16384}),
    ("llama-3.1-70b", "h100-80", {"weights": "fp8", "kv_cache": "fp8", "tensor_parallel": 2, "pipeline_parallel": 3}),
    ("qwen3-8b", "h100-80", {"weights": "fp8", "kv_cache": "bf16", "page_tokens": 64}),
    ("qwen3-8b", "h100-80", {"weights": "bf16", "kv_cache": "fp8", "tensor_parallel": 8}),
]


@pytest.mark.parametrize(
    ("shape", "gpu", "keys"), RECIPES, ids=[f"{shape}-{number}" for number, (shape, *_) in enumerate(RECIPES)]
)
def test_ranks_pages_and_limits_are_the_plan_s(tmp_path: Path, shape: str, gpu: str, keys: dict[str, Any]) -> None:
    plan = plan_of_shape(shape, gpu, target="tensorrt", **{"page_tokens": 32, **keys})
    model, limits = checkpoint_config({}, plan.shape, plan.recipe, plan.group_size), build_config(plan)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"version": "1.2.1", "pretrained_config": model, "build_config": limits}))
    geometry = read_geometry(path)
    (group,) = plan.kv_layout.groups
    assert geometry.page_tokens == plan.page_tokens
    assert page_bytes(geometry) == group.page_bytes(plan.page_tokens)
    assert geometry.world_size == plan.gpus
    built = ranks(plan.shape, tensor=plan.recipe.tensor_parallel, pipeline=plan.recipe.pipeline_parallel)
    for part, rank in zip(rank_parts(geometry), built, strict=True):
        assert (part.rank, part.layers, part.tp_rank) == (rank.index, rank.layers, rank.tensor_rank)
        assert (part.is_first, part.is_last) == (rank.embeds, rank.answers)
        assert geometry.kv_heads == len(rank.kv_heads(plan.shape))
    assert geometry.padded_vocab == padded_vocab(plan.shape.vocab, plan.recipe.tensor_parallel)
    assert geometry.takes_chunks == cuts_prompts(limits)
    assert geometry.build_config.max_seq_len == geometry.build_config.max_input_len == plan.max_seq_len
