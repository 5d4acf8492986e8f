"""Which recipes are legal where, and what is offered instead (cases 1, 2, 3 and 7, and Kimi K2.6 and GLM-5.2)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tiny_checkpoint import TINY

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.models.sources import look_up
from roundhouse.build.planner.buildable import unbuilt_reason
from roundhouse.build.planner.divisibility import group_fits
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.recipe import recipe_from


def plan(config: dict[str, Any] | None = None, *, gpu: str = "h200", **recipe: Any) -> Plan:
    """The plan of a tiny Llama with other dimensions, on one kind of GPU."""
    shape = shape_from_config({**TINY, **(config or {})}, stored_dtype="bfloat16")
    return make_plan(recipe_from({"model": "m", **recipe}), shape, inventory_from_shape(shape), hardware_called(gpu))


def plan_shape(name: str, *, gpu: str = "h200", **recipe: Any) -> Plan:
    shape, inventory = look_up(f"shape:{name}")
    return make_plan(recipe_from({"model": f"shape:{name}", **recipe}), shape, inventory, hardware_called(gpu))


def codes(made: Plan) -> set[str]:
    return {problem.code for problem in made.problems}


def alternatives(made: Plan, code: str) -> tuple[str, ...]:
    return next(problem.legal_alternatives for problem in made.problems if problem.code == code)


LLAMA_7B = {"hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_key_value_heads": 32}


@pytest.mark.parametrize(
    ("intermediate", "legal"),
    [
        (11008, {128: (1, 2), 64: (1, 2, 4), 32: (1, 2, 4, 8)}),
        (13824, {128: (1, 2, 4)}),
        (13696, {128: (1,)}),
        (27392, {128: (1, 2), 64: (1, 2, 4)}),
        (29568, {128: (1,), 64: (1, 2), 32: (1, 2, 4)}),
        (384, {128: (1,)}),
    ],
)
def test_a_group_must_divide_every_shard(intermediate: int, legal: dict[int, tuple[int, ...]]) -> None:
    for group, ranks in legal.items():
        assert tuple(n for n in (1, 2, 4, 8) if group_fits(intermediate, n, group)) == ranks


def test_a_group_that_does_not_divide_a_shard_is_refused_with_the_legal_pairs_nearest_first() -> None:
    made = plan(LLAMA_7B, target="tensorrt", weights="int4_awq", group_size=128, tensor_parallel=4)
    (problem,) = made.problems
    assert problem.where == "model.layers.*.mlp.down_proj.weight"
    assert "11008 inputs / tensor_parallel 4 = 2752" in problem.message
    assert "64 over" in problem.message
    assert problem.legal_alternatives[0] == "group 64 at tensor_parallel 4"
    pairs = {tuple(map(int, re.findall(r"\d+", text))) for text in problem.legal_alternatives}
    assert pairs == {(64, 4), (128, 2), (64, 2), (128, 1)}


def test_the_tiny_model_shards_once_and_not_twice() -> None:
    tiny = {"hidden_size": 256, "intermediate_size": 384}
    assert plan(tiny, target="tensorrt", weights="int4_awq", group_size=128, kv_cache="bf16").legal
    assert "group_size" in codes(plan(tiny, target="tensorrt", weights="int4_awq", group_size=128, tensor_parallel=2))


def test_auto_takes_the_largest_group_that_fits_the_shard() -> None:
    assert plan(LLAMA_7B, target="tensorrt", tensor_parallel=4).group_size == 64
    assert plan(LLAMA_7B, target="tensorrt", tensor_parallel=2).group_size == 128


def test_when_no_kernel_fits_it_is_said_and_never_padded() -> None:
    qwen = {"hidden_size": 8192, "intermediate_size": 29568, "num_attention_heads": 64, "num_key_value_heads": 8}
    made = plan(qwen, target="tensorrt", weights="int4_awq", tensor_parallel=4)
    (problem,) = [problem for problem in made.problems if problem.code == "group_size"]
    assert "none of the group sizes 128, 64 divides it" in problem.message
    assert "32 does, and this target has no kernel for it" in problem.message
    assert problem.legal_alternatives[0] == "group 64 at tensor_parallel 2"
    assert made.weight_bytes_per_gpu > 0
    assert made.kv_tokens > 0


def test_group_32_is_refused_where_no_kernel_takes_it() -> None:
    made = plan(target="tensorrt", weights="int4_awq", group_size=32)
    assert "kernels take 128, 64 only" in made.problems[0].message


@pytest.mark.parametrize(
    ("heads", "kv_heads", "ranks", "legal"),
    [(8, 2, 4, True), (8, 3, 2, False), (6, 6, 4, False), (8, 4, 8, True), (8, 8, 8, True)],
)
def test_heads_divide_or_repeat_or_are_refused(heads: int, kv_heads: int, ranks: int, legal: bool) -> None:
    dims = {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": 32}
    made = plan(dims, target="trtllm-pytorch", weights="bf16", tensor_parallel=ranks)
    assert made.legal is legal
    if legal:
        local = max(1, kv_heads // ranks)
        assert made.kv_bytes_per_token == 2 * 2 * local * 32  # layers, k and v, heads on a rank, FP8 elements
    else:
        assert codes(made) <= {"tensor_parallel", "heads"}
        assert alternatives(made, "tensor_parallel")[-1] == "1"


def test_repeated_heads_are_counted_in_weights_too() -> None:
    dims = {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32}
    two = plan(dims, target="trtllm-pytorch", weights="bf16", tensor_parallel=2)
    four = plan(dims, target="trtllm-pytorch", weights="bf16", tensor_parallel=4)
    key_and_value = 2 * 2 * 32 * 256 * 2  # layers, k and v, one head on each rank, bytes
    rest_of_two = two.weight_bytes_per_gpu - key_and_value
    rest_of_four = four.weight_bytes_per_gpu - key_and_value
    norms = (2 * 2 + 1) * 256 * 2
    assert rest_of_two - norms == 2 * (rest_of_four - norms)
    assert any("2 key/value heads are repeated on 4 ranks" in text for text in four.assumptions)


@pytest.mark.parametrize(
    ("gpu", "target", "recipe", "code", "reason"),
    [
        ("a100", "tensorrt", {"weights": "w4a8_awq", "kv_cache": "bf16"}, "weights", "SM 8.0"),
        ("a100", "tensorrt", {"weights": "int4_awq", "kv_cache": "fp8"}, "kv_cache", "FP8 attention kernels"),
        ("a100", "tensorrt", {"weights": "fp8", "kv_cache": "bf16"}, "weights", "FP8 tensor cores"),
        ("b200", "tensorrt", {"weights": "int4_awq"}, "weights", "Ampere, Ada and Hopper"),
        ("rtx-5090", "trtllm-pytorch", {"weights": "w4a8_awq"}, "weights", "SM 12.0"),
        ("h200", "trtllm-pytorch", {"weights": "nvfp4"}, "weights", "Blackwell"),
        ("h200", "trtllm-pytorch", {"weights": "fp8", "kv_layout": "flashmla-fp8"}, "kv_layout", "keeps latents plain"),
        ("h200", "tensorrt", {"weights": "fp8", "page_tokens": 48}, "page_tokens", "power of two"),
        ("h200", "tensorrt", {"weights": "fp8", "quantize_scope": "routed_experts"}, "quantize_scope", "all linears"),
        ("h200", "tensorrt", {"weights": "fp8", "attention_data_parallel": True}, "attention_data_parallel", "trtllm-pytorch"),
    ],
)
def test_the_hardware_is_asked_before_anything_is_spent(
    gpu: str, target: str, recipe: dict[str, Any], code: str, reason: str
) -> None:
    made = plan(gpu=gpu, target=target, **recipe)
    assert codes(made) == {code}
    assert reason in made.problems[0].message
    assert made.problems[0].legal_alternatives


def test_legal_alternatives_are_legal() -> None:
    """Whatever is offered instead of illegal weights or KV types is taken when it is asked for."""
    for gpu in ("a100", "l40s", "h200", "b200", "rtx-5090"):
        for target in ("tensorrt", "trtllm-pytorch"):
            for weights in ("int4_awq", "w4a8_awq", "nvfp4", "fp8"):
                made = plan(gpu=gpu, target=target, weights=weights, kv_cache="bf16")
                for problem in made.problems:
                    assert problem.code == "weights"
                    for other in problem.legal_alternatives:
                        assert plan(gpu=gpu, target=target, weights=other, kv_cache="bf16").legal


def test_w4a16_with_fp8_kv_on_engines_loses_prefix_reuse_and_says_so() -> None:
    made = plan(target="tensorrt", weights="int4_awq", kv_cache="fp8")
    assert made.legal
    (warning,) = made.warnings
    assert "prefix reuse and chunked prefill are lost" in warning
    assert "no request is longer than a step of max_num_tokens (1,024)" in warning
    assert "kv_cache bf16 keeps them" in warning
    assert not plan(target="tensorrt", weights="w4a8_awq", kv_cache="fp8").warnings
    assert not plan(target="tensorrt", weights="int4_awq", kv_cache="bf16").warnings


def test_a_gpu_target_without_a_gpu_is_one_problem_not_one_for_each_kernel() -> None:
    assert codes(plan(gpu="cpu", target="trtllm-pytorch", weights="nvfp4")) == {"hardware"}


def test_models_that_one_target_has_not_name_the_target_that_has() -> None:
    made = plan_shape("deepseek-v3", target="tensorrt", tensor_parallel=8)
    assert "architecture" in codes(made)
    assert alternatives(made, "architecture") == ("target trtllm-pytorch",)


def test_kimi_as_published_is_not_for_tensorrt_llm_and_the_choices_are_said() -> None:
    made = plan_shape("kimi-k2.6", guard="off", tensor_parallel=8)
    assert made.recipe.target == "trtllm-pytorch"
    assert made.recipe.weights == "as_is"
    assert made.recipe.page_tokens == 64
    assert codes(made) == {"weights"}
    assert alternatives(made, "weights")[0] == "w4a8_awq from a checkpoint that is in it"
    assert "1.3.0rc13" in made.warnings[0]
    assert made.checkpoint_bytes == pytest.approx(595.1e9, rel=1e-3)
    assert made.kv_bytes_per_token == 35_136


def test_a_model_that_is_published_quantized_can_be_planned_as_an_unquantized_copy() -> None:
    refused = plan_shape("kimi-k2.6", guard="off", tensor_parallel=8, weights="w4a8_awq")
    (problem,) = refused.problems
    assert (problem.code, problem.legal_alternatives) == ("input", ())  # as it is it would be refused too
    assert "shape:kimi-k2.6@bf16" in problem.message
    assert plan_shape("kimi-k2.6@bf16", guard="off", tensor_parallel=8, weights="w4a8_awq").legal
    assert alternatives(plan_shape("deepseek-v3", tensor_parallel=8, weights="w4a8_awq"), "input") == ("as_is",)


def test_a_target_is_not_offered_instead_of_itself() -> None:
    windowed = {"architectures": ["MistralForCausalLM"], "sliding_window": 128}
    made = plan(windowed, target="torch", weights="bf16", guard="off")
    assert alternatives(made, "architecture") == ("target trtllm-pytorch",)


def test_what_is_not_built_is_not_offered() -> None:
    windowed = {"architectures": ["MistralForCausalLM"], "sliding_window": 128}
    assert alternatives(plan(windowed, target="torch", weights="int4_awq", guard="off"), "architecture") == ()
    assert alternatives(plan(target="tensorrt", weights="nvfp4"), "weights") == ("int4_awq", "fp8", "bf16")
    assert alternatives(plan(gpu="b200", target="trtllm-pytorch", weights="int4_awq"), "weights") == ("fp8", "bf16")
    given = {"quantization_config": {"quant_algo": "FP8"}}
    assert alternatives(plan(given, target="tensorrt", weights="fp8"), "input") == ()
    assert alternatives(plan(given, target="trtllm-pytorch", weights="fp8"), "input") == ("as_is",)


def test_another_spread_of_what_is_not_built_is_offered_for_a_plan() -> None:
    made = plan_shape("llama-3.1-70b", gpu="l40s", target="trtllm-pytorch", weights="w4a8_awq", tensor_parallel=3)
    assert "4" in alternatives(made, "tensor_parallel")


def test_tensors_that_fail_alike_are_one_problem() -> None:
    made = plan(LLAMA_7B, target="tensorrt", weights="fp8", tensor_parallel=32)
    assert made.legal
    made = plan(LLAMA_7B | {"intermediate_size": 11010}, target="tensorrt", weights="fp8", tensor_parallel=4)
    (problem,) = made.problems
    assert "model.layers.*.mlp.gate_proj, up_proj, down_proj: 11010 does not divide among 4 ranks" in problem.message


def test_glm_is_counted_with_the_indexers_it_has() -> None:
    made = plan_shape("glm-5.2", guard="off", tensor_parallel=8, weights="w4a8_awq", quantize_scope="routed_experts")
    assert made.legal
    assert made.kv_bytes_per_token == 78 * 576 + 21 * 132
    assert made.recipe.page_tokens == 64
    older = plan_shape("glm-5.1", guard="off", tensor_parallel=8, weights="w4a8_awq", quantize_scope="routed_experts")
    assert older.kv_bytes_per_token == 78 * (576 + 132)


def test_experts_are_spread_whole_or_cut_and_must_divide() -> None:
    assert plan_shape("qwen3-30b-a3b", weights="fp8", tensor_parallel=4, expert_parallel=4).legal
    assert "expert_parallel" in codes(plan_shape("qwen3-30b-a3b", weights="fp8", tensor_parallel=4, expert_parallel=3))
    assert "expert_parallel" in codes(plan(weights="fp8", expert_parallel=2, tensor_parallel=2))


def test_blocks_of_a_quantized_input_are_not_cut() -> None:
    assert plan_shape("deepseek-v3", tensor_parallel=16).legal
    made = plan_shape("deepseek-v3", tensor_parallel=32)
    assert any("whole blocks of 128" in problem.message for problem in made.problems)


def test_weights_that_do_not_fit_name_the_spread_that_does() -> None:
    made = plan_shape("llama-3.1-70b", gpu="l40s", weights="bf16")
    assert codes(made) == {"memory"}
    assert alternatives(made, "memory")[0] == "tensor_parallel 4"
    assert plan_shape("llama-3.1-70b", gpu="l40s", weights="bf16", tensor_parallel=4).legal


def test_what_the_user_left_open_is_decided_and_said() -> None:
    made = plan_shape("gpt-oss-120b", tensor_parallel=2)
    said = " ".join(made.assumptions)
    assert "target trtllm-pytorch, because a GPU is planned for" in said
    assert "weights as_is, because the input is quantized already (mxfp4)" in said
    named = plan_shape("llama-3.1-8b", target="tensorrt", weights="fp8", page_tokens=64)
    assert (named.recipe.target, named.recipe.page_tokens) == ("tensorrt", 64)


_RECIPES: dict[str, dict[str, Any]] = {
    "int4": {"weights": "int4_awq"},
    "int4 g32": {"weights": "int4_awq", "group_size": 32},
    "w4a8": {"weights": "w4a8_awq"},
    "nvfp4": {"weights": "nvfp4"},
    "fp8": {"weights": "fp8", "page_tokens": 48},
    "bf16": {"weights": "bf16", "kv_layout": "flashmla-fp8"},
    "as it is": {},
}


@pytest.mark.parametrize("recipe", _RECIPES.values(), ids=_RECIPES)
@pytest.mark.parametrize("target", ["torch", "tensorrt", "trtllm-pytorch"])
def test_whatever_is_offered_solves_its_problem_and_makes_no_other(target: str, recipe: dict[str, Any]) -> None:
    """Every alternative of every refused plan, over shapes, GPUs and spreads, is planned; other weights are built, too."""
    for name in ("qwen3-30b-a3b", "smollm2-135m"):
        for gpu in ("a100", "b200"):
            for spread in ({}, {"tensor_parallel": 6, "expert_parallel": 4}):
                made = plan_shape(name, gpu=gpu, target=target, **recipe, **spread)
                known = codes(made)
                for problem in made.problems:
                    for alternative in problem.alternatives:
                        copy = f"{name}@bf16" if alternative.unquantized else name
                        given = {"target": target, **recipe, **spread, **alternative.changes}
                        instead = plan_shape(copy, gpu=gpu, **given)
                        if alternative.changes.keys() & {"weights", "target"} and not alternative.given:
                            assert unbuilt_reason(instead.recipe, instead.shape) is None, (name, gpu, spread, alternative.text)
                        left = codes(instead)
                        assert left <= known - {problem.code}, (name, gpu, spread, problem.code, alternative.text)


@pytest.mark.parametrize(
    ("gpu", "target", "quantization", "refused"),
    [
        ("h200", "trtllm-pytorch", {"quant_method": "gptq", "bits": 4, "group_size": 128}, "GPTQ"),
        ("h200", "tensorrt", {"quant_method": "gptq", "bits": 4, "group_size": 128}, None),
        ("h200", "tensorrt", {"quant_method": "gptq", "bits": 4, "group_size": 32}, "groups of 32"),
        ("h200", "trtllm-pytorch", {"quant_method": "awq", "bits": 4, "group_size": 128}, None),
        ("h200", "trtllm-pytorch", {"quant_method": "awq", "bits": 4, "group_size": 32}, "groups of 32"),
        ("b200", "trtllm-pytorch", {"quant_method": "awq", "bits": 4, "group_size": 128}, "Ampere, Ada and Hopper"),
        ("a100", "trtllm-pytorch", {"quant_algo": "W4A8_AWQ", "group_size": 128}, "W4A8"),
        ("h200", "trtllm-pytorch", {"quant_algo": "W4A8_AWQ", "group_size": 128}, None),
    ],
)
def test_quantized_inputs_need_a_kernel_for_what_they_are(
    gpu: str, target: str, quantization: dict[str, Any], refused: str | None
) -> None:
    dense = LLAMA_7B | {"quantization_config": quantization}
    made = plan(dense, gpu=gpu, target=target, kv_cache="bf16")
    assert made.recipe.weights == "as_is"
    said = " ".join(problem.message for problem in made.problems)
    assert made.legal is (refused is None), said
    assert (refused or "") in said


def test_what_is_offered_for_the_largest_is_legal() -> None:
    """Kimi K2.6 as published, and from an unquantized copy."""
    for gpu in ("h200", "b200"):
        made = plan_shape("kimi-k2.6", guard="off", gpu=gpu, tensor_parallel=8)
        (problem,) = made.problems
        assert problem.alternatives
        for alternative in problem.alternatives:
            assert alternative.unquantized
            assert plan_shape("kimi-k2.6@bf16", guard="off", gpu=gpu, tensor_parallel=8, **alternative.changes).legal


def test_the_one_int4_form_of_experts_that_runs_is_not_refused() -> None:
    experts = {
        "architectures": ["Qwen3MoeForCausalLM"],
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 256,
    }
    w4a8 = {"quantization_config": {"quant_algo": "W4A8_AWQ", "group_size": 128}}
    assert plan(experts | w4a8, target="trtllm-pytorch").legal
    awq = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}
    assert "weights" in codes(plan(experts | awq, target="trtllm-pytorch"))


def test_an_input_that_is_w4a16_already_loses_prefix_reuse_too() -> None:
    awq = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}
    (warning,) = plan(LLAMA_7B | awq, target="tensorrt", kv_cache="fp8").warnings
    assert "prefix reuse and chunked prefill are lost" in warning


def test_groups_of_nvfp4_divide_every_shard() -> None:
    made = plan_shape("qwen3-30b-a3b", gpu="b200", weights="nvfp4", tensor_parallel=32, target="trtllm-pytorch")
    assert "group_size" in codes(made)
    assert plan_shape("qwen3-30b-a3b", gpu="b200", weights="nvfp4", tensor_parallel=4, target="trtllm-pytorch").legal


def test_sparse_attention_needs_its_kernels_and_latent_attention_warns_without_them() -> None:
    assert "attention" in codes(plan_shape("glm-5.2", guard="off", gpu="l40s", weights="w4a8_awq", tensor_parallel=16))
    latent = plan_shape("deepseek-v3@bf16", gpu="a100", weights="bf16", kv_cache="bf16", tensor_parallel=32)
    assert any("prefix reuse and chunked prefill are turned off" in text for text in latent.warnings)


def test_dense_layers_of_a_latent_model_go_to_fewer_ranks() -> None:
    made = plan_shape("deepseek-v3", tensor_parallel=32, expert_parallel=32)
    assert "tensor_parallel" not in codes(made)


def test_three_ranks_are_offered_where_heads_are_nine() -> None:
    made = plan_shape("smollm2-135m", weights="bf16", tensor_parallel=8)
    assert "3" in alternatives(made, "tensor_parallel")


def test_more_key_value_heads_than_attention_heads_cannot_be() -> None:
    for kv_heads in (3, 5, 16):
        assert "heads" in codes(
            plan({"num_attention_heads": 8, "num_key_value_heads": kv_heads, "head_dim": 32}, weights="bf16")
        )


def test_a_pool_without_a_token_is_no_plan() -> None:
    windows = {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "num_hidden_layers": 6,
        "sliding_window": 64,
    }
    made = plan(
        windows | {"max_position_embeddings": 4096},
        target="trtllm-pytorch",
        weights="bf16",
        guard="off",
        kv_cache_bytes=100_000,
    )
    assert "memory" in codes(made)
    small = plan(
        windows | {"max_position_embeddings": 4096}, target="trtllm-pytorch", weights="bf16", guard="off", kv_cache_tokens=64
    )
    assert small.legal
    assert small.kv_tokens == 64


def test_what_is_offered_has_room() -> None:
    """Weights that would be legal and too large are not offered while something else is."""
    made = plan_shape("kimi-k2.6", guard="off", tensor_parallel=8)
    offered = [name.split()[0] for name in alternatives(made, "weights")]
    assert "bf16" not in offered
    for weights in offered:
        assert "memory" not in codes(plan_shape("kimi-k2.6", guard="off", tensor_parallel=8, weights=weights))


def test_int4_sizes_that_the_engine_builder_would_round_up_are_refused() -> None:
    odd = {"hidden_size": 2304, "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}
    made = plan(odd, target="tensorrt", weights="int4_awq", tensor_parallel=4)
    assert codes(made) == {"padded"}
    assert "hidden size 2304 is no multiple of 512" in made.problems[0].message
    assert alternatives(made, "padded")[:2] == ("group_size 64", "tensor_parallel 2")
    for changes in ({"group_size": 64, "tensor_parallel": 4}, {"tensor_parallel": 2}):
        assert plan(odd, target="tensorrt", weights="int4_awq", **changes).legal
    assert plan(odd, target="trtllm-pytorch", weights="int4_awq", tensor_parallel=4).legal
