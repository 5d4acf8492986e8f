"""What tensors are for, and how tensor parallelism cuts them, by names as real checkpoints have them."""

from __future__ import annotations

import pytest

from roundhouse.build.models.parameters import Inventory, Parameter, in_tower, part_and_split

NAMES = {
    "model.embed_tokens.weight": ("embedding", "outputs"),
    "language_model.model.embed_tokens.weight": ("embedding", "outputs"),
    "lm_head.weight": ("head", "outputs"),
    "model.norm.weight": ("norm", "none"),
    "model.layers.0.input_layernorm.weight": ("norm", "none"),
    "model.layers.0.self_attn.q_proj.weight": ("attention", "outputs"),
    "model.layers.0.self_attn.q_proj.bias": ("bias", "outputs"),
    "model.layers.0.self_attn.k_proj.weight": ("attention", "kv_heads"),
    "model.layers.0.self_attn.v_proj.bias": ("bias", "kv_heads"),
    "model.layers.0.self_attn.o_proj.weight": ("attention", "inputs"),
    "model.layers.0.self_attn.o_proj.bias": ("bias", "none"),
    "model.layers.0.self_attn.qkv_proj.weight": ("attention", "outputs"),
    "model.layers.0.self_attn.q_norm.weight": ("norm", "none"),
    "model.layers.0.self_attn.sinks": ("attention", "outputs"),
    "model.layers.0.self_attn.q_a_proj.weight": ("attention", "none"),
    "model.layers.0.self_attn.q_a_proj.bias": ("bias", "none"),
    "model.layers.0.self_attn.q_a_layernorm.weight": ("norm", "none"),
    "model.layers.0.self_attn.q_b_proj.weight": ("attention", "outputs"),
    "model.layers.0.self_attn.kv_a_proj_with_mqa.weight": ("attention", "none"),
    "model.layers.0.self_attn.kv_b_proj.weight": ("attention", "outputs"),
    "model.layers.0.self_attn.indexer.wq_b.weight": ("indexer", "none"),
    "model.layers.0.self_attn.indexer.k_norm.bias": ("norm", "none"),
    "model.layers.0.self_attn.k_scale": ("scale", "none"),
    "model.layers.0.mlp.gate_proj.weight": ("mlp", "outputs"),
    "model.layers.0.mlp.gate_up_proj.weight": ("mlp", "outputs"),
    "model.layers.0.mlp.down_proj.weight": ("mlp", "inputs"),
    "model.layers.0.mlp.down_proj.bias": ("bias", "none"),
    "model.layers.1.mlp.gate.weight": ("router", "none"),
    "model.layers.1.mlp.gate.e_score_correction_bias": ("router", "none"),
    "model.layers.1.mlp.router.bias": ("router", "none"),
    "model.layers.1.block_sparse_moe.gate.weight": ("router", "none"),
    "model.layers.1.block_sparse_moe.experts.7.w1.weight": ("routed_expert", "outputs"),
    "model.layers.1.block_sparse_moe.experts.7.w2.weight": ("routed_expert", "inputs"),
    "model.layers.1.mlp.experts.7.up_proj.weight": ("routed_expert", "outputs"),
    "model.layers.1.mlp.experts.gate_up_proj": ("routed_expert", "outputs"),
    "model.layers.1.mlp.experts.down_proj": ("routed_expert", "inputs"),
    "model.layers.1.mlp.experts.gate_up_proj_bias": ("bias", "outputs"),
    "model.layers.1.mlp.experts.down_proj_bias": ("bias", "none"),
    "model.layers.1.mlp.shared_experts.up_proj.weight": ("shared_expert", "outputs"),
    "model.layers.1.mlp.shared_expert.down_proj.weight": ("shared_expert", "inputs"),
    "model.layers.1.mlp.shared_expert_gate.weight": ("router", "none"),
    "model.layers.61.shared_head.head.weight": ("head", "outputs"),
    "model.layers.61.shared_head.norm.weight": ("norm", "none"),
    "model.layers.61.enorm.weight": ("norm", "none"),
    "model.layers.61.embed_tokens.weight": ("embedding", "outputs"),
    "vision_tower.encoder.blocks.0.wqkv.weight": ("other", "none"),
    "model.visual.blocks.0.attn.k_proj.weight": ("other", "none"),
    "multi_modal_projector.linear_1.bias": ("other", "none"),
    "model.layers.0.mixer.in_proj.weight": None,
    "transformer.h.0.attn.c_attn.weight": None,
    "weight": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_tells_what_a_tensor_is_for(name: str) -> None:
    assert part_and_split(name) == NAMES[name]


def test_towers_are_told_by_their_names() -> None:
    assert in_tower("audio_tower.layers.0.fc1.weight")
    assert not in_tower("model.layers.0.mlp.up_proj.weight")


def test_only_matrices_of_linears_may_be_quantized() -> None:
    assert Parameter("x", (8, 4), "mlp", "outputs").is_linear
    assert not Parameter("x", (8,), "attention", "outputs").is_linear
    assert not any(Parameter("x", (8, 4), part, "none").is_linear for part in ("embedding", "head", "router", "norm", "other"))


def test_sums_count_every_copy_in_every_layer() -> None:
    experts = Parameter("e", (8, 4), "routed_expert", "outputs", layers=(1, 2), copies=3)
    stored = Parameter("s", (8, 4), "mlp", "outputs", stored_bytes=20)
    further = Parameter("m", (8, 4), "mlp", "outputs", layers=(3,), mtp=True)
    found = Inventory((experts, stored, further), from_files=False)
    assert [parameter.count for parameter in found.parameters] == [6, 1, 1]
    assert found.elements == 7 * 32
    assert found.stored_bytes == 6 * 64 + 20 + 64
