from __future__ import annotations

from typing import Any

import pytest
from trtllm_recipes import llm_plan

from roundhouse.build.planner.problems import Problem
from roundhouse.build.trtllm.llm_options import llm_problems, llm_warnings


def problems(name: str, **keys: Any) -> list[Problem]:
    plan = llm_plan(name, **keys)
    return llm_problems(plan.recipe, plan.shape)


def warnings(name: str, **keys: Any) -> str:
    plan = llm_plan(name, **keys)
    return "\n".join(llm_warnings(plan.recipe, plan.shape, plan.hardware))


def test_attention_data_parallelism_cannot_be_guarded() -> None:
    (problem,) = problems("qwen3-30b-a3b-attention-dp", guard="tags")
    assert "pages cannot be checked: set guard: off or attention_data_parallel: false" in problem.message
    assert problem.legal_alternatives == ("guard off", "attention_data_parallel False")
    assert problems("qwen3-30b-a3b-attention-dp") == []


def test_pipeline_parallelism_cannot_be_guarded() -> None:
    (problem,) = problems("llama-3.1-70b-tp4", pipeline_parallel=2)
    assert problem.message == "the KV connector that installs the page check refuses pipeline parallelism"
    assert problems("llama-3.1-70b-tp4", pipeline_parallel=2, guard="off") == []


def test_a_model_of_a_later_release_cannot_be_guarded() -> None:
    plan = llm_plan("glm-5.2-tp8", guard="tags")
    (problem,) = plan.problems
    assert "needs TensorRT-LLM 1.3.0rc8, and the page check knows 1.2.1 alone" in problem.message
    assert problem.legal_alternatives == ("guard off",)


def test_pages_outside_of_a_window_are_not_checked() -> None:
    plan = llm_plan("llama-3.1-70b-tp4")
    shape = plan.shape.model_copy(update={"sliding_window": 4096, "sliding_layers": tuple(range(plan.shape.layers))})
    (problem,) = llm_problems(plan.recipe, shape)
    assert "pages outside of the window of 4,096 tokens are freed under their request" in problem.message
    assert llm_problems(plan.recipe.model_copy(update={"max_seq_len": 4096}), shape) == []


def test_several_window_sizes_cannot_be_guarded() -> None:
    keys = {"shape": "gpt-oss-120b", "gpu": "h200", "weights": "as_is", "kv_cache": "bf16", "tensor_parallel": 2}
    (problem,) = problems("smollm2", **keys)
    assert "some layers look back on 128 tokens" in problem.message
    assert problems("smollm2", guard="off", **keys) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"disable_overlap_scheduler": False}, "runs between whole steps"),
        ({"kv_cache_config": {"host_cache_size": 1024}}, "pages that move to the host"),
        ({"scheduler_config.capacity_scheduler_policy": "MAX_UTILIZATION"}, "GUARANTEED_NO_EVICT"),
        ({"speculative_config": {"decoding_type": "MTP"}}, "speculative decoding"),
        ({"cache_transceiver_config.backend": "UCX"}, "cache transceiver"),
        ({"kv_connector_config": {"connector_module": "mine"}}, "one KV connector"),
        ({"env_overrides": {"ROUNDHOUSE_GUARD_HOME": "/x"}}, "belongs to the page check"),
        ({"max_beam_width": 2}, "beams share pages"),
        ({"kv_cache_config.enable_partial_reuse": True}, "part of a page would be copied"),
        ({"orchestrator_type": "ray"}, "the ranks agree over MPI"),
        ({"env_overrides": {"TLLM_DISABLE_MPI": "1"}}, "the ranks agree over MPI"),
    ],
)
def test_options_that_the_page_check_cannot_be_had_beside(options: dict[str, Any], reason: str) -> None:
    (problem,) = problems("smollm2", target_options=options)
    assert reason in problem.message
    assert problem.where.startswith("target_options.")
    assert problem.legal_alternatives == ("guard off",)
    assert problems("smollm2", target_options=options, guard="off") == []


@pytest.mark.parametrize(
    "options",
    [
        {"disable_overlap_scheduler": True, "max_beam_width": 1, "speculative_config": None},
        {"kv_cache_config": {"host_cache_size": 0, "enable_block_reuse": False}},
        {"env_overrides": {"NCCL_DEBUG": "WARN"}, "stream_interval": 2},
    ],
)
def test_options_that_change_nothing_for_the_page_check_are_free(options: dict[str, Any]) -> None:
    assert problems("smollm2", target_options=options) == []


def test_upstream_asserts_that_some_memory_is_left() -> None:
    (problem,) = problems("llama-3.1-70b-tp4", memory_fraction=1)
    assert (problem.where, problem.legal_alternatives) == ("memory_fraction", ("0.95",))
    assert problems("llama-3.1-70b-tp4", memory_fraction=0.99) == []


def test_a_step_takes_a_page_of_a_prompt() -> None:
    (problem,) = llm_plan("smollm2", max_num_tokens=17).problems
    assert problem.message.startswith(
        "max_num_tokens 17 is less than page_tokens 32: TensorRT-LLM cuts prompts into whole pages"
    )
    assert problem.legal_alternatives == ("max_num_tokens 32", "page_tokens 16")
    (sparse,) = llm_plan("glm-5.2-tp8", max_num_tokens=63).problems
    assert sparse.legal_alternatives == ("max_num_tokens 64",)
    assert llm_plan("smollm2", max_num_tokens=32).legal


def test_sizes_of_graphs_are_named_or_made_and_not_both() -> None:
    both = {"cuda_graph_config": {"batch_sizes": [1, 2], "max_batch_size": 2}}
    (problem,) = problems("smollm2", target_options=both)
    assert problem.where == "target_options.cuda_graph_config.batch_sizes"
    assert "and cuda_graph_config.max_batch_size exclude each other upstream; keep one" in problem.message
    assert problems("smollm2", target_options={"cuda_graph_config.batch_sizes": [1, 2]}) == []
    assert problems("smollm2", target_options={"cuda_graph_config.max_batch_size": 2}) == []


def test_sizes_of_graphs_that_no_step_has_are_named() -> None:
    said = warnings("smollm2", max_batch_size=8, target_options={"cuda_graph_config.batch_sizes": [16, 8, 0]})
    assert "target_options.cuda_graph_config.batch_sizes: 16, 0 left out, for a step of a rank has 1 to 8 requests" in said
    assert "left out" not in warnings("smollm2", max_batch_size=8, target_options={"cuda_graph_config.batch_sizes": [8, 1]})


def test_int4_heads_are_not_repeated() -> None:
    (problem,) = problems("qwen3-30b-a3b", tensor_parallel=8, expert_parallel=8)
    assert "INT4 key and value projections of 4 heads" in problem.message
    assert problem.legal_alternatives == ("4", "weights fp8")
    assert problems("qwen3-30b-a3b", tensor_parallel=8, expert_parallel=8, weights="fp8") == []
    assert problems("qwen3-30b-a3b", tensor_parallel=8, expert_parallel=8, quantize_scope="routed_experts") == []
    assert problems("kimi-k2.6-decode-tp8") == []


def test_what_the_page_check_costs_is_said_where_it_is_on() -> None:
    assert "guard tags turns the overlap scheduler off on trtllm-pytorch" in warnings("smollm2")
    assert "overlap" not in warnings("smollm2", guard="off")
    assert "overlap" not in warnings("kimi-k2.6-prefill-tp8")


def test_the_scales_of_an_fp8_cache_are_warned_about() -> None:
    assert "stored with scale 1" in warnings("smollm2", guard="off")
    assert warnings("smollm2", guard="off", kv_cache="bf16") == ""


def test_the_form_of_int4_experts_is_said_where_it_is_not_modelopts() -> None:
    for keys in ({}, {"quantized": None, "weights": "w4a8_awq", "quantize_scope": "routed_experts"}):
        said = warnings("kimi-k2.6-decode-tp8", **keys)
        assert "reads routed experts as INT4 without AWQ's scales" in said
        assert "Only a checkpoint in that form, given with weights as_is, passes" in said
    assert "experts" not in warnings("qwen3-30b-a3b")
    assert "W4A8 experts on SM 8.9" in warnings("qwen3-30b-a3b", gpu="l40s", kv_cache="bf16")


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_who_serves_half_of_a_request_is_asked_for_the_way_of_its_pages(role: str) -> None:
    sends = {"cache_transceiver_config.backend": "UCX", "cache_transceiver_config.max_tokens_in_buffer": 8192}
    assert f"role {role} without target_options.cache_transceiver_config" in warnings("smollm2", role=role, guard="off")
    assert "transceiver" not in warnings("smollm2", role=role, guard="off", target_options=sends)
    assert "transceiver" not in warnings("smollm2")
