from __future__ import annotations

from typing import Any

import pytest
from tiny_checkpoint import TINY, checkpoint_of

from roundhouse.build.hardware import Hardware
from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.stored_inventory import inventory_from_checkpoint
from roundhouse.build.planner.plan import Plan, make_plan, require_legal
from roundhouse.build.recipe import recipe_from
from roundhouse.errors import PlanRefusedError

GIB = 1 << 30
MACHINE = Hardware(name="test", kind="cpu", cores=2, total_memory=16 * GIB, free_memory=8 * GIB)


def plan(config: dict[str, Any] | None = None, extra: dict[str, tuple[int, ...]] | None = None, **recipe: Any) -> Plan:
    """The plan of a two-layer Llama of hidden 256, with ``extra`` tensors, on a machine with 8 GiB free."""
    shape = shape_from_config({**TINY, **(config or {})}, stored_dtype="bfloat16")
    checkpoint = checkpoint_of(shape, extra)
    return make_plan(recipe_from({"model": "folder", **recipe}), shape, inventory_from_checkpoint(shape, checkpoint), MACHINE)


def codes(made: Plan) -> list[str]:
    return [problem.code for problem in made.problems]


def test_kv_bytes_per_token_of_grouped_query_attention() -> None:
    bf16, fp8 = plan(kv_cache="bf16"), plan(kv_cache="fp8")
    assert bf16.kv_bytes_per_token == 2 * 2 * 4 * 32 * 2  # layers, k and v, heads, head size, bytes
    assert fp8.kv_bytes_per_token * 2 == bf16.kv_bytes_per_token


def test_fp8_pages_hold_twice_the_tokens_in_one_byte_budget() -> None:
    assert plan(kv_cache="fp8", kv_cache_bytes=GIB).kv_tokens == 2 * plan(kv_cache="bf16", kv_cache_bytes=GIB).kv_tokens


@pytest.mark.parametrize(
    ("key", "value", "tokens", "limit"),
    [
        ("kv_cache_tokens", 1000, 992, "kv_cache_tokens"),
        ("kv_cache_bytes", 1 << 20, 2048, "kv_cache_bytes"),
        ("max_batch_size", 4, 4 * 512, "max_batch_size x max_seq_len"),
        ("max_batch_size", 10**6, None, "half of free memory"),
        ("memory_fraction", 0.5, None, "memory_fraction"),
    ],
)
def test_the_knob_that_bound_is_said(key: str, value: object, tokens: int | None, limit: str) -> None:
    made = plan(**{key: value})
    assert made.binding_limit == limit
    assert made.legal
    if tokens is not None:
        assert made.kv_tokens == tokens
    elif limit == "memory_fraction":
        assert (
            made.weight_bytes_per_gpu + made.kv_bytes
            <= MACHINE.free_memory / 2
            < made.weight_bytes_per_gpu + made.kv_bytes + 2**15
        )
    else:
        assert made.kv_bytes <= (MACHINE.free_memory - made.weight_bytes_per_gpu) / 2


def test_the_group_size_is_the_largest_that_divides() -> None:
    assert plan().group_size == 128
    assert plan({"intermediate_size": 576}).group_size == 64


def test_a_group_size_that_does_not_divide_is_refused_per_tensor_with_the_legal_ones() -> None:
    made = plan({"intermediate_size": 576}, group_size=128)
    (problem,) = made.problems
    assert "down_proj" in problem.where
    assert "576 % group_size 128 = 64" in problem.message
    assert problem.legal_alternatives == ("64", "32", "16")
    assert made.checkpoint_bytes > 0


def test_no_group_size_at_all_is_said() -> None:
    assert codes(plan({"intermediate_size": 513})) == ["group_size"]


@pytest.mark.parametrize(
    ("recipe", "code"),
    [
        ({"target": "tensorrt", "page_tokens": 32}, "hardware"),
        ({"target": "trtllm-pytorch", "page_tokens": 32}, "hardware"),
        ({"weights": "w4a8_awq"}, "weights"),
        ({"weights": "nvfp4"}, "weights"),
        ({"activations": "int8"}, "activations"),
        ({"tensor_parallel": 2}, "tensor_parallel"),
        ({"quantize_scope": "routed_experts"}, "quantize_scope"),
        ({"attention_data_parallel": True}, "attention_data_parallel"),
        ({"kv_layout": "flashmla-fp8"}, "kv_layout"),
        ({"max_seq_len": 1024}, "max_seq_len"),
        ({"kv_cache_tokens": 3}, "memory"),
        ({"kv_cache_bytes": 100 * GIB}, "memory"),
        ({"target_options": {"opt": 1}}, "target_options"),
    ],
)
def test_what_the_torch_target_does_not_run_is_refused(recipe: dict[str, Any], code: str) -> None:
    made = plan(**recipe)
    assert codes(made) == [code]
    with pytest.raises(PlanRefusedError) as refused:
        require_legal(made)
    assert len(refused.value.reasons) == 1
    assert refused.value.exit_code == 3


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"architectures": ["Qwen3MoeForCausalLM"]}, "mixture-of-experts"),
        ({"architectures": ["DeepseekV3ForCausalLM"]}, "latent attention"),
        ({"architectures": ["MistralForCausalLM"], "sliding_window": 128}, "sliding window of 128"),
        ({"architectures": ["SomethingNew"]}, "not known here"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "depend on neighbours"),
        ({"rope_parameters": {"rope_type": "dynamic"}}, "depend on neighbours"),
        ({"rope_scaling": {"type": "odd"}}, "rope odd: this one is not known"),
        ({"architectures": None, "model_type": "odd"}, "model_type odd"),
        ({"quantization_config": {"quant_method": "awq"}}, "already quantized"),
    ],
)
def test_models_that_cannot_run_are_refused_with_the_reason(config: dict[str, Any], reason: str) -> None:
    made = plan(config)
    assert any(reason in problem.message for problem in made.problems)


def test_a_window_as_long_as_the_context_is_full_attention() -> None:
    assert plan({"architectures": ["MistralForCausalLM"], "sliding_window": 512}).legal
    assert plan({"architectures": ["Qwen2ForCausalLM"], "sliding_window": 128, "use_sliding_window": False}).legal


@pytest.mark.parametrize("rope", [{"rope_type": "llama3"}, {"type": "linear"}, {"rope_type": "yarn"}, {"rope_theta": 1e4}])
def test_ropes_that_do_not_depend_on_the_batch_are_run(rope: dict[str, Any]) -> None:
    assert plan({"rope_scaling": rope}).legal
    assert plan({"rope_parameters": rope}).legal


def test_every_reason_is_given_not_only_the_first() -> None:
    assert len(plan(weights="nvfp4", tensor_parallel=2, activations="int8").problems) == 3


def test_tied_heads_are_counted_once() -> None:
    tied, untied = plan({"tie_word_embeddings": True}), plan()
    assert untied.checkpoint_bytes - tied.checkpoint_bytes == 1024 * 256 * 2
    assert untied.weight_bytes_per_gpu - tied.weight_bytes_per_gpu == 1024 * 256 * 2


def test_an_input_of_another_dtype_is_said() -> None:
    (warning,) = plan({"dtype": "float16"}).warnings
    assert "fp16" in warning


def test_experts_fused_into_one_tensor_are_refused_not_left_unquantized() -> None:
    made = plan(extra={"model.layers.0.mlp.experts.down_proj": (4, 512, 256)})
    assert codes(made) == ["fused"]
    assert "4 experts of [256, 512] in one tensor" in made.problems[0].message
    assert plan(extra={"model.layers.0.mlp.experts.down_proj": (4, 512, 256)}, weights="bf16").legal
