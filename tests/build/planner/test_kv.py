"""What tokens leave in the cache, and how many fit: latent, sparse, windows, worst cases (cases 11 and 16)."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_checkpoint import TINY

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.models.shipped import shipped_config
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.kv_budget import kv_budget
from roundhouse.build.planner.kv_layout import layout_for
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.recipe import recipe_from

LATENT = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "num_hidden_layers": 61,
    "q_lora_rank": 96,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
MIXED = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "num_hidden_layers": 6,
    "sliding_window": 64,
    "max_position_embeddings": 4096,
}


def shape_of(config: dict[str, Any]):
    return shape_from_config({**TINY, **config}, stored_dtype="bfloat16")


def plan(config: dict[str, Any], *, gpu: str = "h200", request_tokens: int | None = None, **recipe: Any) -> Plan:
    shape, given = shape_of(config), {"model": "m", "target": "trtllm-pytorch", "weights": "bf16", **recipe}
    return make_plan(
        recipe_from(given), shape, inventory_from_shape(shape), hardware_called(gpu), request_tokens=request_tokens
    )


def test_latent_attention_is_never_counted_as_if_it_were_expanded() -> None:
    shape = shape_of(LATENT)
    assert layout_for(shape, "bf16").bytes_per_token == 70_272
    assert layout_for(shape, "fp8").bytes_per_token == 35_136
    assert [field.name for field in layout_for(shape, "fp8").groups[0].fields] == ["latent"]


def test_every_rank_keeps_the_whole_latent() -> None:
    one, eight = (plan(LATENT, tensor_parallel=n, page_tokens=64) for n in (1, 8))
    assert one.kv_bytes_per_token == eight.kv_bytes_per_token


def test_sparse_attention_adds_a_key_for_each_layer_that_owns_an_indexer() -> None:
    sparse = LATENT | {"index_n_heads": 4, "index_head_dim": 128, "index_topk": 2048, "index_topk_freq": 4}
    shape = shape_of(sparse)
    assert shape.indexer is not None
    owners = len(shape.indexer.layers)
    assert 0 < owners < 61
    assert layout_for(shape, "bf16").bytes_per_token == 61 * 1152 + owners * 132
    assert layout_for(shape, "fp8").bytes_per_token == 61 * 576 + owners * 132
    assert layout_for(shape, "fp8", flashmla=True).bytes_per_token == 61 * 656 + owners * 132


def test_mixed_layers_are_two_groups_and_their_capacity_depends_on_the_context() -> None:
    short = plan(MIXED, request_tokens=64, kv_cache_bytes=1 << 30)
    long = plan(MIXED, request_tokens=4096, kv_cache_bytes=1 << 30)
    assert [group.window for group in long.kv_layout.groups] == [None, 64]
    assert [len(group.fields[0].layers) for group in long.kv_layout.groups] == [1, 5]
    assert (short.kv_tokens_context, long.kv_tokens_context) == (64, 4096)
    assert long.kv_tokens > 4 * short.kv_tokens
    assert any("some layers forget" in text for text in long.assumptions)


def test_a_window_keeps_its_tokens_and_one_page_more_at_most() -> None:
    window = layout_for(shape_of(MIXED), "bf16").groups[1]
    assert [window.pages_for(n, 16) for n in (1, 16, 17, 64, 80, 1000)] == [1, 1, 2, 4, 5, 5]


def test_requests_that_fit_really_fit() -> None:
    for config in (MIXED, TINY, LATENT):
        made = plan(config, request_tokens=300, kv_cache_bytes=1 << 26, page_tokens=64)
        each = made.kv_layout.request_bytes(300, 64)
        assert made.requests_that_fit * each <= made.kv_bytes <= 1 << 26
        assert (made.requests_that_fit + 2) * each > made.kv_bytes


def test_a_window_longer_than_the_longest_request_is_full_attention() -> None:
    assert len(layout_for(shape_of(MIXED | {"sliding_window": 4096}), "bf16").groups) == 1


def test_attention_data_parallelism_multiplies_capacity_and_repeats_attention() -> None:
    tensor = plan(LATENT, tensor_parallel=4, page_tokens=64)
    data = plan(LATENT, tensor_parallel=4, page_tokens=64, attention_data_parallel=True)
    assert data.weight_bytes_per_gpu > tensor.weight_bytes_per_gpu
    assert data.kv_tokens == 4 * data.pages * 64
    assert tensor.kv_tokens == tensor.pages * 64
    assert data.requests_that_fit == 4 * (data.pages // 8)  # 512 tokens in pages of 64


def test_pipeline_stages_share_layers_and_the_fullest_decides() -> None:
    one, two = plan(TINY | {"num_hidden_layers": 3}), plan(TINY | {"num_hidden_layers": 3}, pipeline_parallel=2)
    assert [(stage.first_layer, stage.last_layer) for stage in two.stages] == [(0, 1), (2, 2)]
    assert two.gpus == 2
    head = 1024 * 256 * 2
    assert sum(stage.weight_bytes for stage in two.stages) == one.weight_bytes_per_gpu
    assert two.stages[0].weight_bytes > two.stages[1].weight_bytes > head
    assert two.kv_bytes_per_token * 3 == one.kv_bytes_per_token * 2
    assert two.stages[0].kv_bytes == 2 * two.stages[1].kv_bytes
    assert all(stage.weight_bytes + stage.kv_bytes <= stage.free_memory for stage in two.stages)


def test_a_tied_embedding_lies_on_the_first_and_the_last_stage() -> None:
    tied = plan(TINY | {"tie_word_embeddings": True}, pipeline_parallel=2)
    untied = plan(TINY, pipeline_parallel=2)
    assert [stage.weight_bytes for stage in tied.stages] == [stage.weight_bytes for stage in untied.stages]


@pytest.mark.parametrize(
    ("config", "tokens", "worst"),
    [
        ({"num_hidden_layers": 32}, 192 * 4096, 192 * 4096 * 524_288),
        ({"num_hidden_layers": 28}, 115 * 1024, 54_022_635_520),
    ],
)
def test_the_worst_case_is_in_the_plan_before_anything_is_loaded(config: dict[str, Any], tokens: int, worst: int) -> None:
    llama_2 = {
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "max_position_embeddings": 4096,
    }
    longest = 4096 if config["num_hidden_layers"] == 32 else 1024
    made = plan(llama_2 | config, gpu="a100", kv_cache="bf16", max_batch_size=tokens // longest, max_seq_len=longest)
    assert made.worst_case_bytes == worst
    assert made.worst_case_bytes > made.hardware.free_memory or longest == 1024


def test_the_fraction_counts_weights_and_pages_of_what_is_free_before_loading() -> None:
    made = plan(TINY, memory_fraction=0.5)
    taken, free = made.weight_bytes_per_gpu + made.kv_bytes, made.hardware.free_memory
    assert taken <= free / 2 < taken + made.kv_bytes_per_token * made.page_tokens
    assert made.binding_limit == "memory_fraction"
    assert any("memory_fraction 0.9, the target's default," in text for text in plan(TINY).assumptions)


def test_a_budget_of_tokens_of_a_mixed_model_is_for_requests_of_the_given_length() -> None:
    shape = shape_of(MIXED)
    recipe = recipe_from({"model": "m", "kv_cache_tokens": 40_960})
    budget = kv_budget(recipe, layout_for(shape, "bf16"), max_seq_len=4096, weight_bytes=0, free_memory=1 << 40)
    assert budget.group_pages == (40_960 // 16, 10 * 5)
    assert budget.tokens == 40_960


@pytest.mark.parametrize("length", [64, 65, 300, 1000, 4096])
@pytest.mark.parametrize("requests", [1, 3, 7, 32])
def test_a_pool_for_a_full_batch_holds_a_full_batch(length: int, requests: int) -> None:
    """Shares of groups are whole numbers: a float's rounding must not cost a request."""
    for config in (MIXED, TINY | {"max_position_embeddings": 4096}):
        shape = shape_of(config)
        recipe = recipe_from({"model": "m", "max_batch_size": requests})
        layout = layout_for(shape, "bf16")
        budget = kv_budget(recipe, layout, max_seq_len=length, weight_bytes=0, free_memory=1 << 40)
        for group, pages in zip(layout.groups, budget.group_pages, strict=True):
            assert pages == requests * group.pages_for(length, 16)


def test_glm_5_2_owns_21_indexers() -> None:
    shape = shape_from_config(shipped_config("GLM-5.2"), stored_dtype=None)
    assert shape.indexer is not None
    assert len(shape.indexer.layers) == 21
