"""A recipe as the arguments of TensorRT-LLM's LLM API (``tensorrt_llm.LLM``, the fields of ``TorchLlmArgs``).

Quantization is none of them: the checkpoint says it. Neither is what only a deployment knows: where the model lies, and how
the page check is installed (``roundhouse.serve.trtllm_arguments``).
"""

from __future__ import annotations

from typing import Any

from ..merging import merged
from ..models.shape import ModelShape
from ..planner.plan import Plan
from ..planner.support import traits_of
from ..recipe import Recipe
from .llm_graphs import cuda_graphs, rows_of_a_rank
from .llm_moe import moe_backend
from .options import nested_options

__all__ = ["LLM_ARGUMENTS", "llm_arguments"]

LLM_ARGUMENTS = "tensorrt_llm.llmapi.llm_args.TorchLlmArgs"
"""The record that every argument is checked against."""


def llm_arguments(plan: Plan) -> dict[str, Any]:
    """What a plan's recipe is to the LLM API, with the recipe's ``target_options`` in it.

    Sizes of batches are upstream's, which are those of one rank where ranks run requests of their own.
    """
    recipe, shape, options = plan.recipe, plan.shape, nested_options(plan.recipe.target_options)
    batch = rows_of_a_rank(recipe)
    arguments: dict[str, Any] = {
        "backend": "pytorch",
        **_parallel(recipe, shape),
        "max_batch_size": batch,
        "max_num_tokens": recipe.max_num_tokens,
        "max_seq_len": plan.max_seq_len,
        # A prompt that is longer than a step is refused unless it may be cut.
        "enable_chunked_prefill": plan.max_seq_len > recipe.max_num_tokens,
        "kv_cache_config": _kv_cache(plan),
        "cuda_graph_config": cuda_graphs(options.pop("cuda_graph_config", {}), batch),
    }
    if recipe.role == "prefill":  # upstream's context servers refuse it, and one step a prompt leaves nothing to overlap
        arguments["disable_overlap_scheduler"] = True
    if backend := moe_backend(recipe, shape, plan.hardware):
        arguments["moe_config"] = {"backend": backend}
    return merged(arguments, options)


def _kv_cache(plan: Plan) -> dict[str, Any]:
    """``kv_cache_config``: the size of a page, the type, and how much memory.

    Our ``memory_fraction`` is of what is free before anything is loaded, upstream's of what a trial run leaves. Bytes are
    given as tokens too: upstream counts a pool's blocks from ``max_tokens`` and its own fraction, of which it takes the
    smaller, and looks at ``max_gpu_total_bytes`` only where layers have windows of several sizes (``KVCacheManager``'s
    ``calculate_max_num_blocks``, and ``KvCacheCreator.configure_kv_cache_capacity`` before it).
    """
    recipe = plan.recipe
    # Of what the checkpoint says, `auto` takes the type. 16 bits have no other name, and one that differs is refused.
    found: dict[str, Any] = {
        "tokens_per_block": recipe.page_tokens,
        "dtype": "fp8" if recipe.kv_cache == "fp8" else "auto",
    }
    if recipe.kv_cache_tokens is not None:
        found["max_tokens"] = recipe.kv_cache_tokens
    elif recipe.kv_cache_bytes is not None:
        found |= {"max_tokens": _pool_tokens(plan), "max_gpu_total_bytes": recipe.kv_cache_bytes}
    else:
        found["free_gpu_memory_fraction"] = recipe.memory_fraction or traits_of(recipe.target).memory_fraction
        found |= {"max_tokens": _pool_tokens(plan), "max_gpu_total_bytes": plan.kv_bytes}
    return found


def _pool_tokens(plan: Plan) -> int:
    """Tokens of one rank's pool, in whole pages; each costs what it does in all layers, for upstream keeps it in all."""
    return plan.kv_bytes // (plan.kv_bytes_per_token * plan.recipe.page_tokens) * plan.recipe.page_tokens


def _parallel(recipe: Recipe, shape: ModelShape) -> dict[str, Any]:
    found: dict[str, Any] = {
        "tensor_parallel_size": recipe.tensor_parallel,
        "pipeline_parallel_size": recipe.pipeline_parallel,
    }
    if shape.moe is not None:
        found["moe_expert_parallel_size"] = recipe.expert_parallel
    if recipe.attention_data_parallel:
        found["enable_attention_dp"] = True
    return found
