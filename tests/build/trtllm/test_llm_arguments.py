from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from trtllm_recipes import LLM_RECIPES, golden_llm_texts, llm_plan

from roundhouse.build.trtllm.llm_arguments import LLM_ARGUMENTS, llm_arguments
from roundhouse.build.trtllm.upstream import check_fields


def test_every_recipe_of_the_table_has_the_arguments_of_its_golden_file() -> None:
    for path, text in golden_llm_texts().items():
        assert text == path.read_text(), f"{path.name}; if this is meant: python tests/build/support/trtllm_recipes.py"


@pytest.mark.parametrize("name", LLM_RECIPES)
def test_recipes_of_the_table_are_legal_and_their_arguments_known_upstream(name: str) -> None:
    plan = llm_plan(name)
    assert plan.legal, [problem.message for problem in plan.problems]
    assert check_fields(LLM_ARGUMENTS, llm_arguments(plan)) == []


@given(
    role=st.sampled_from(["aggregated", "prefill", "decode"]),
    weights=st.sampled_from(["bf16", "fp8", "w4a8_awq"]),
    kv_cache=st.sampled_from(["bf16", "fp8"]),
    tensor=st.sampled_from([1, 2, 4]),
    pipeline=st.integers(1, 3),
    data=st.booleans(),
    memory=st.sampled_from([{}, {"memory_fraction": 0.5}, {"kv_cache_bytes": 2**30}, {"kv_cache_tokens": 4096}]),
    batch=st.integers(1, 512),
    step=st.integers(1, 65536),
)
def test_whatever_a_recipe_says_upstream_knows_it(role, weights, kv_cache, tensor, pipeline, data, memory, batch, step) -> None:
    plan = llm_plan(
        "qwen3-30b-a3b",
        role=role,
        weights=weights,
        kv_cache=kv_cache,
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        expert_parallel=1,
        attention_data_parallel=data,
        max_batch_size=batch,
        max_num_tokens=step,
        **{"memory_fraction": None, **memory},
    )
    arguments = llm_arguments(plan)
    assert check_fields(LLM_ARGUMENTS, arguments) == []
    assert arguments["enable_chunked_prefill"] == (step < plan.max_seq_len)
    ranks = tensor if data else 1
    assert ranks * (arguments["max_batch_size"] - 1) < batch <= ranks * arguments["max_batch_size"]
    assert arguments["cuda_graph_config"]["max_batch_size"] == arguments["max_batch_size"]


def test_memory_keys_become_what_upstream_calls_them() -> None:
    def cache(**keys: object) -> dict[str, object]:
        return dict(llm_arguments(llm_plan("smollm2", **{"kv_cache_tokens": None, **keys}))["kv_cache_config"])

    assert cache(kv_cache_tokens=4096)["max_tokens"] == 4096
    assert cache(kv_cache_bytes=2**30)["max_gpu_total_bytes"] == 2**30
    plan = llm_plan("smollm2", kv_cache_tokens=None, memory_fraction=0.5)
    shared = llm_arguments(plan)["kv_cache_config"]
    assert (shared["free_gpu_memory_fraction"], shared["max_gpu_total_bytes"]) == (0.5, plan.kv_bytes)


def test_the_usual_share_of_memory_is_told_as_one_that_is_given() -> None:
    left_out = llm_plan("smollm2", kv_cache_tokens=None)
    given = llm_plan("smollm2", kv_cache_tokens=None, memory_fraction=0.9)
    assert llm_arguments(left_out) == llm_arguments(given)


@pytest.mark.parametrize("name", ["smollm2", "qwen3-30b-a3b", "qwen3-30b-a3b-attention-dp", "glm-5.2-tp8"])
@pytest.mark.parametrize("memory", [{"kv_cache_bytes": 3 * 2**30 + 7}, {"memory_fraction": 0.75}, {}])
def test_a_pool_of_bytes_is_the_tokens_of_its_whole_pages_too(name: str, memory: dict[str, object]) -> None:
    """Upstream counts blocks from ``max_tokens``, and of its fraction's tokens and these takes the fewer."""
    plan = llm_plan(name, **{"kv_cache_tokens": None, "kv_cache_bytes": None, "memory_fraction": None, **memory})
    tokens = llm_arguments(plan)["kv_cache_config"]["max_tokens"]
    assert tokens == plan.pages * plan.page_tokens > 0
    assert tokens * plan.kv_bytes_per_token == plan.kv_bytes


def test_layers_with_windows_take_as_much_as_others_upstream() -> None:
    keys = {"shape": "gpt-oss-120b", "gpu": "h200", "weights": "as_is", "kv_cache": "bf16", "tensor_parallel": 2}
    plan = llm_plan("smollm2", guard="off", kv_cache_tokens=None, kv_cache_bytes=2**33, max_seq_len=65536, **keys)
    tokens = llm_arguments(plan)["kv_cache_config"]["max_tokens"]
    assert tokens % plan.page_tokens == 0
    assert plan.kv_bytes - plan.kv_bytes_per_token * plan.page_tokens < tokens * plan.kv_bytes_per_token <= plan.kv_bytes


def test_a_cache_of_16_bits_has_no_name_upstream() -> None:
    assert llm_arguments(llm_plan("smollm2", kv_cache="bf16"))["kv_cache_config"]["dtype"] == "auto"
    assert llm_arguments(llm_plan("smollm2"))["kv_cache_config"]["dtype"] == "fp8"


@pytest.mark.parametrize(
    ("shape", "gpu", "backend"),
    [
        ("deepseek-v3", "h200", "CUTLASS"),
        ("deepseek-v3", "b200", "DEEPGEMM"),
        ("gpt-oss-120b", "h200", "TRITON"),
        ("gpt-oss-120b", "b200", "TRTLLM"),
        ("qwen3-30b-a3b", "b200", "CUTLASS"),
    ],
)
def test_experts_get_a_backend_that_takes_their_weights_on_the_gpu(shape: str, gpu: str, backend: str) -> None:
    weights = {"weights": "fp8"} if shape.startswith("qwen") else {"weights": "as_is"}
    plan = llm_plan("glm-5.2-tp8", shape=shape, gpu=gpu, expert_parallel=1, guard="off", max_seq_len=32768, **weights)
    assert llm_arguments(plan)["moe_config"] == {"backend": backend}


def test_a_dense_model_has_no_arguments_for_experts() -> None:
    assert not {"moe_config", "moe_expert_parallel_size"} & llm_arguments(llm_plan("llama-3.1-70b-tp4")).keys()


def test_options_are_laid_over_what_the_recipe_says() -> None:
    plan = llm_plan("qwen3-30b-a3b", target_options={"moe_config.backend": "VANILLA", "kv_cache_config": {"use_uvm": True}})
    arguments = llm_arguments(plan)
    assert arguments["moe_config"] == {"backend": "VANILLA"}
    assert arguments["kv_cache_config"]["use_uvm"]
    assert arguments["kv_cache_config"]["dtype"] == "fp8"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"batch_sizes": [4, 1, 2]}, {"enable_padding": True, "batch_sizes": [1, 2, 4]}),
        ({"batch_sizes": [64, 1, 32], "enable_padding": False}, {"enable_padding": False, "batch_sizes": [1, 32]}),
        ({"batch_sizes": [64]}, {"enable_padding": True, "max_batch_size": 32}),
        ({"batch_sizes": []}, {"enable_padding": True, "max_batch_size": 32, "batch_sizes": []}),
        ({"max_batch_size": 8}, {"enable_padding": True, "max_batch_size": 8}),
        (None, None),
    ],
)
def test_graphs_have_the_sizes_that_are_named_or_a_largest_one_and_never_both(options: object, expected: object) -> None:
    plan = llm_plan("smollm2", max_batch_size=32, target_options={"cuda_graph_config": options})
    assert llm_arguments(plan)["cuda_graph_config"] == expected


def test_the_file_reads_back_as_the_arguments() -> None:
    for path in golden_llm_texts():
        plan = llm_plan(path.stem.removeprefix("llm-"))
        assert yaml.safe_load(path.read_text()) == llm_arguments(plan)
