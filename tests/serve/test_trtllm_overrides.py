from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trtllm_recipes import llm_plan

from roundhouse.build.merging import merged
from roundhouse.build.trtllm.llm_arguments import LLM_ARGUMENTS, llm_arguments
from roundhouse.build.trtllm.upstream import check_fields
from roundhouse.errors import UsageError
from roundhouse.serve.settings import Overrides
from roundhouse.serve.trtllm_overrides import overridden

PLAN = llm_plan("qwen3-30b-a3b")
BUILT = llm_arguments(PLAN)


def changed(**keys: Any) -> dict[str, Any]:
    return overridden(BUILT, PLAN, Overrides(**keys))


def test_without_overrides_nothing_changes() -> None:
    assert changed() == BUILT
    assert changed(guard="off") == BUILT


def test_sizes_change_what_follows_from_them_and_nothing_else() -> None:
    found = changed(max_batch_size=7, max_seq_len=4096, max_num_tokens=8192)
    assert (found["max_batch_size"], found["cuda_graph_config"]["max_batch_size"]) == (7, 7)
    assert (found["max_seq_len"], found["enable_chunked_prefill"]) == (4096, False)
    assert {key for key in BUILT if found[key] != BUILT[key]} == {
        "max_batch_size",
        "cuda_graph_config",
        "max_seq_len",
        "enable_chunked_prefill",
    }


def test_a_memory_key_takes_the_place_of_the_recipes() -> None:
    kept = {"tokens_per_block": 32, "dtype": "fp8", "event_buffer_max_size": 1024}
    assert changed(kv_cache_tokens=4096)["kv_cache_config"] == {**kept, "max_tokens": 4096}
    tokens = 2**30 // (PLAN.kv_bytes_per_token * 32) * 32
    assert changed(kv_cache_bytes=2**30)["kv_cache_config"] == {**kept, "max_tokens": tokens, "max_gpu_total_bytes": 2**30}
    assert changed(kv_cache_bytes=2**30, page_tokens=512)["kv_cache_config"]["max_tokens"] % 512 == 0
    half = changed(memory_fraction=0.5)["kv_cache_config"]
    assert half["free_gpu_memory_fraction"] == 0.5
    assert 0 < half["max_gpu_total_bytes"] < BUILT["kv_cache_config"]["max_gpu_total_bytes"]


def test_named_sizes_of_graphs_are_those_that_a_smaller_step_has() -> None:
    plan = llm_plan("smollm2", max_batch_size=8, target_options={"cuda_graph_config.batch_sizes": [1, 2, 4, 8]})
    found = overridden(llm_arguments(plan), plan, Overrides(max_batch_size=4))
    assert (found["max_batch_size"], found["cuda_graph_config"]) == (4, {"enable_padding": True, "batch_sizes": [1, 2, 4]})


def test_prefix_reuse_is_upstreams_block_reuse() -> None:
    assert changed(prefix_reuse=False)["kv_cache_config"]["enable_block_reuse"] is False


@given(
    sizes=st.fixed_dictionaries(
        {},
        optional={
            "page_tokens": st.sampled_from([16, 32, 64]),
            "max_batch_size": st.integers(1, 4096),
            "max_seq_len": st.integers(1, 40960),
            "max_num_tokens": st.integers(1, 65536),
            "prefix_reuse": st.booleans(),
        },
    ),
    memory=st.sampled_from([{}, {"memory_fraction": 0.3}, {"kv_cache_bytes": 2**34}, {"kv_cache_tokens": 8192}]),
)
def test_whatever_is_overridden_upstream_knows_it_and_the_engine_is_as_if_planned_so(
    sizes: dict[str, Any], memory: dict[str, Any]
) -> None:
    found = changed(**sizes, **memory)
    assert check_fields(LLM_ARGUMENTS, found) == []
    reuse = {"kv_cache_config": {"enable_block_reuse": sizes["prefix_reuse"]}} if "prefix_reuse" in sizes else {}
    keys = {key: value for key, value in sizes.items() if key != "prefix_reuse"}
    planned = llm_plan("qwen3-30b-a3b", **keys, **({"memory_fraction": None, **memory} if memory else {}))
    assert found == merged(llm_arguments(planned), reuse)


def test_what_the_engine_was_built_with_stays() -> None:
    older = {**BUILT, "stream_interval": 9, "print_iter_log": True}
    found = overridden(older, PLAN, Overrides(max_batch_size=7))
    assert (found["stream_interval"], found["print_iter_log"], found["max_batch_size"]) == (9, True, 7)


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"max_waiting": 3}, "--max-waiting: TensorRT-LLM runs its own loop"),
        ({"kernels": "torch"}, "--kernels: TensorRT-LLM runs its own loop"),
        ({"max_seq_len": 10**6}, "is above the model's 40960 positions"),
        ({"kv_cache_bytes": 1000}, "no KV page fits"),
        ({"kv_cache_bytes": 10**15}, r"and KV pages \([\d,]+ B, from kv_cache_bytes\) exceed the [\d,]+ B of free memory"),
        ({"kv_cache_tokens": 10**9}, "from kv_cache_tokens"),
        ({"page_tokens": 48}, "page_tokens 48: TensorRT-LLM's tokens_per_block is a power of two"),
    ],
)
def test_overrides_that_cannot_be_are_refused(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        changed(**keys)
