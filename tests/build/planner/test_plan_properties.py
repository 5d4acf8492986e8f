"""What holds for every model: bytes grow with every dimension, and sharding loses and invents nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.models.shape import ModelShape
from roundhouse.build.planner.fit import fit_of
from roundhouse.build.planner.formats import BF16, FP8_BLOCK, MXFP4, NVFP4, int4
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.kv_layout import layout_for
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.planner.scheme import Scheme
from roundhouse.build.planner.sharding import (
    Parallel,
    kv_heads_of,
    ranks_of,
    stage_layers,
    stage_parameters,
    weight_bytes,
)
from roundhouse.build.recipe import recipe_from

_MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 128}
_FAMILIES: dict[str, dict[str, Any]] = {
    "LlamaForCausalLM": {},
    "Qwen2ForCausalLM": {},
    "Qwen3MoeForCausalLM": {"num_experts": 8, **_MOE},
    "Glm4MoeForCausalLM": {"n_routed_experts": 8, "n_shared_experts": 1, "first_k_dense_replace": 1, **_MOE},
    "DeepseekV3ForCausalLM": {
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
        "q_lora_rank": 128,
        "kv_lora_rank": 128,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 128,
        "v_head_dim": 128,
        **_MOE,
    },
}
_FORMATS = st.sampled_from([BF16, FP8_BLOCK, NVFP4, MXFP4, int4(32), int4(128)])


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """A config whose dimensions divide among eight ranks in whole groups of 128."""
    family = draw(st.sampled_from(sorted(_FAMILIES)))
    return {
        "architectures": [family],
        "hidden_size": 1024 * draw(st.integers(1, 3)),
        "intermediate_size": 1024 * draw(st.integers(1, 4)),
        "num_hidden_layers": draw(st.integers(2, 6)),
        "num_attention_heads": 8 * draw(st.integers(1, 3)),
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 1024 * draw(st.integers(1, 4)),
        "max_position_embeddings": 4096,
        "tie_word_embeddings": draw(st.booleans()),
        "dtype": "bfloat16",
        **_FAMILIES[family],
        **({"moe_intermediate_size": 1024 * draw(st.integers(1, 2))} if "moe_intermediate_size" in _FAMILIES[family] else {}),
    }


def shape_of(config: dict[str, Any]) -> ModelShape:
    return shape_from_config(config, stored_dtype=None)


def plan(config: dict[str, Any], **recipe: Any) -> Plan:
    shape = shape_of(config)
    given_recipe = {"model": "m", "target": "trtllm-pytorch", "page_tokens": 64, "max_seq_len": 1024, **recipe}
    return make_plan(recipe_from(given_recipe), shape, inventory_from_shape(shape), hardware_called("h200"))


_GROWING = ("hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size", "moe_intermediate_size", "kv_lora_rank")


@given(config=configs(), dimension=st.sampled_from(_GROWING), weights=st.sampled_from(["bf16", "fp8", "int4_awq"]))
def test_bytes_grow_with_every_dimension(config: dict[str, Any], dimension: str, weights: str) -> None:
    assume(dimension in config and not (dimension == "intermediate_size" and "num_experts" in config))  # Qwen3 has no dense MLP
    small, large = (plan({**config, dimension: size}, weights=weights) for size in (config[dimension], config[dimension] * 2))
    assert large.checkpoint_bytes > small.checkpoint_bytes
    assert large.weight_bytes_per_gpu > small.weight_bytes_per_gpu
    assert large.base_bytes > small.base_bytes
    assert large.kv_bytes_per_token >= small.kv_bytes_per_token
    assert large.kv_tokens <= small.kv_tokens


@given(config=configs(), routed=_FORMATS, linear=_FORMATS, ranks=st.sampled_from([2, 4, 8]), experts=st.sampled_from([1, 2]))
def test_tensor_parallelism_conserves_bytes_up_to_what_is_repeated(
    config: dict[str, Any], routed: Any, linear: Any, ranks: int, experts: int
) -> None:
    shape, scheme = shape_of(config), Scheme(routed, linear)
    parameters = inventory_from_shape(shape).parameters
    parallel = Parallel(ranks, expert=experts)
    whole = weight_bytes(parameters, scheme, shape, Parallel())
    whole_parts = [p for p in parameters if p.split == "none"]
    cut = [p for p in parameters if p not in whole_parts and ranks_of(p, parallel) > 1]
    repeated = sum(scheme.bytes_of(p, p.shape) * p.count for p in whole_parts)
    cut_for = {p.part: ranks // experts if p.part == "routed_expert" else ranks for p in cut}
    scalars = sum(scheme.format_of(p).scalar_bytes * p.count * (cut_for[p.part] - 1) for p in cut)
    assert ranks * weight_bytes(parameters, scheme, shape, parallel) == whole + (ranks - 1) * repeated + scalars


@given(config=configs(), stages=st.integers(1, 6))
def test_pipeline_stages_hold_every_tensor_once_and_a_tied_embedding_twice(config: dict[str, Any], stages: int) -> None:
    shape = shape_of(config)
    parameters, scheme = inventory_from_shape(shape).parameters, Scheme(BF16, BF16)
    ranges = stage_layers(shape.layers, min(stages, shape.layers))
    assert [layer for layers in ranges for layer in layers] == list(range(shape.layers))
    parts = [weight_bytes(stage_parameters(parameters, shape, r), scheme, shape, Parallel()) for r in ranges]
    again = 2 * shape.vocab * shape.hidden if shape.tied_embeddings and len(ranges) > 1 else 0
    assert sum(parts) == weight_bytes(parameters, scheme, shape, Parallel()) + again


@given(config=configs(), ranks=st.sampled_from([1, 2, 4, 8, 16]))
def test_ranks_together_keep_every_head_and_latents_whole(config: dict[str, Any], ranks: int) -> None:
    shape, parallel = shape_of(config), Parallel(ranks)
    whole = layout_for(shape, "fp8").bytes_per_token
    local = layout_for(shape, "fp8", kv_heads=kv_heads_of(shape, parallel)).bytes_per_token
    if shape.latent is not None:
        assert local == whole
    else:
        assert local * ranks == whole * max(1, ranks // shape.kv_heads)


@given(
    config=configs(),
    weights=st.sampled_from(["bf16", "fp8", "int4_awq"]),
    fraction=st.floats(0.05, 1),
    kv=st.sampled_from(["bf16", "fp8"]),
    data=st.booleans(),
)
def test_a_plan_that_fits_fits(config: dict[str, Any], weights: str, fraction: float, kv: str, data: bool) -> None:
    """Never more than the memory there is, and not a page less than the fraction allows."""
    made = plan(config, weights=weights, memory_fraction=fraction, kv_cache=kv, tensor_parallel=8, attention_data_parallel=data)
    budget = made.hardware.free_memory * fraction
    page = made.kv_bytes_per_token * made.page_tokens
    assert made.weight_bytes_per_gpu + made.kv_bytes <= budget < made.weight_bytes_per_gpu + made.kv_bytes + page
    assert made.kv_bytes == made.pages * page
    assert "memory" not in {problem.code for problem in made.problems}
    assert made.requests_that_fit * made.request_tokens <= made.kv_tokens


@given(config=configs())
def test_formats_of_fewer_bits_take_fewer_bytes(config: dict[str, Any]) -> None:
    shape = shape_of(config)
    parameters = inventory_from_shape(shape).parameters
    sizes = [
        weight_bytes(parameters, Scheme(form, form), shape, Parallel())
        for form in (MXFP4, int4(128), NVFP4, int4(32), FP8_BLOCK, BF16)
    ]
    assert sizes[0] < sizes[2] < sizes[4] < sizes[5]
    assert sizes[1] < sizes[3] < sizes[4]


@given(config=configs(), tokens=st.integers(1, 4096))
def test_the_planner_gives_the_same_answer_whatever_order_tensors_come_in(config: dict[str, Any], tokens: int) -> None:
    shape = shape_of(config)
    inventory = inventory_from_shape(shape)
    turned = type(inventory)(tuple(reversed(inventory.parameters)), inventory.from_files)
    recipe = recipe_from({"model": "m", "target": "trtllm-pytorch", "weights": "bf16", "page_tokens": 64})
    one, other = (fit_of(recipe, shape, each, hardware_called("h200"), None, tokens) for each in (inventory, turned))
    assert (one.weights, one.budget) == (other.weights, other.budget)
