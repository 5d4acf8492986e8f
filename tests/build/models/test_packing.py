"""What lies behind a quantizer's packing: the shape of the plain weight, and every scale with the weight it belongs to."""

from __future__ import annotations

from typing import Any

import pytest
from stored import EXPERTS, HIDDEN, INNER, MOE, Dims, Tensors, in_layers, only, read

PACKINGS: dict[str, tuple[dict[str, Any], Tensors]] = {
    "plain": ({}, {"weight": ("BF16", (HIDDEN, 512))}),
    "FP8 by tensor": (
        {"quant_method": "fp8"},
        {"weight": ("F8_E4M3", (HIDDEN, 512)), "weight_scale": ("F32", ()), "input_scale": ("F32", ())},
    ),
    "FP8 by block": (
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
        {"weight": ("F8_E4M3", (HIDDEN, 512)), "weight_scale_inv": ("F32", (2, 4))},
    ),
    "compressed-tensors INT4": (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
        },
        {
            "weight_packed": ("I32", (HIDDEN, 512 // 8)),
            "weight_scale": ("BF16", (HIDDEN, 512 // 32)),
            "weight_shape": ("I64", (2,)),
        },
    ),
    "compressed-tensors INT8": (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int", "strategy": "channel"}}},
        },
        {"weight_packed": ("I32", (HIDDEN, 512 // 4)), "weight_scale": ("BF16", (HIDDEN, 1)), "weight_shape": ("I64", (2,))},
    ),
    "compressed-tensors NVFP4": (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
        },
        {
            "weight_packed": ("U8", (HIDDEN, 512 // 2)),
            "weight_scale": ("F8_E4M3", (HIDDEN, 512 // 16)),
            "weight_global_scale": ("F32", (1,)),
            "input_global_scale": ("F32", (1,)),
        },
    ),
    "AutoAWQ": (
        {"quant_method": "awq", "bits": 4, "group_size": 128},
        {
            "qweight": ("I32", (512, HIDDEN // 8)),
            "qzeros": ("I32", (4, HIDDEN // 8)),
            "scales": ("F16", (4, HIDDEN)),
        },
    ),
    "GPTQ": (
        {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True},
        {
            "qweight": ("I32", (512 // 8, HIDDEN)),
            "qzeros": ("I32", (4, HIDDEN // 8)),
            "scales": ("F16", (4, HIDDEN)),
            "g_idx": ("I32", (512,)),
        },
    ),
    "GPTQ without an order of its own": (
        {"quant_method": "gptq", "bits": 4, "group_size": 128},
        {"qweight": ("I32", (512 // 8, HIDDEN)), "qzeros": ("I32", (4, HIDDEN // 8)), "scales": ("F16", (4, HIDDEN))},
    ),
    "GPTQ of 8 bits": (
        {"quant_method": "gptq", "bits": 8, "group_size": 128},
        {"qweight": ("I32", (512 // 4, HIDDEN)), "qzeros": ("I32", (4, HIDDEN // 4)), "scales": ("F16", (4, HIDDEN))},
    ),
    "ModelOpt INT4": (
        {"quant_method": "modelopt", "quant_algo": "W4A16_AWQ", "group_size": 128},
        {
            "weight": ("U8", (HIDDEN // 2, 512)),
            "weight_scale": ("F32", (HIDDEN, 4)),
            "pre_quant_scale": ("BF16", (512,)),
        },
    ),
    "ModelOpt INT4 with FP8 activations": (
        {"quant_method": "modelopt", "quant_algo": "W4A8_AWQ", "group_size": 128},
        {
            "weight": ("U8", (HIDDEN // 2, 512)),
            "weight_scale": ("F8_E4M3", (HIDDEN, 4)),
            "weight_scale_2": ("F32", ()),
            "pre_quant_scale": ("BF16", (512,)),
            "input_scale": ("F32", ()),
        },
    ),
    "ModelOpt NVFP4": (
        {"quant_method": "modelopt", "quant_algo": "NVFP4"},
        {
            "weight": ("U8", (HIDDEN, 512 // 2)),
            "weight_scale": ("F8_E4M3", (HIDDEN, 512 // 16)),
            "weight_scale_2": ("F32", ()),
            "input_scale": ("F32", ()),
        },
    ),
}


@pytest.mark.parametrize("packing", PACKINGS)
def test_the_shape_behind_a_packing_is_the_plain_one_and_its_scales_belong_to_it(packing: str) -> None:
    quantization, tensors = PACKINGS[packing]
    checkpoint = in_layers(tensors)
    found = only(read(checkpoint, quantization_config=quantization))
    assert (found.name, found.shape) == ("model.layers.*.self_attn.o_proj.weight", (HIDDEN, 512))
    assert (found.part, found.split, found.layers, found.copies) == ("attention", "inputs", (0, 1), 1)
    assert not found.fused


FUSED: dict[str, tuple[Tensors, Dims]] = {
    "gate and up": ({"gate_up_proj": ("BF16", (EXPERTS, 2 * INNER, HIDDEN))}, (2 * INNER, HIDDEN)),
    "down": ({"down_proj": ("BF16", (EXPERTS, HIDDEN, INNER))}, (HIDDEN, INNER)),
    "gate and up, inputs first": ({"gate_up_proj": ("BF16", (EXPERTS, HIDDEN, 2 * INNER))}, (2 * INNER, HIDDEN)),
    "down, inputs first": ({"down_proj": ("BF16", (EXPERTS, INNER, HIDDEN))}, (HIDDEN, INNER)),
    "MXFP4 gate and up": (
        {
            "gate_up_proj_blocks": ("U8", (EXPERTS, 2 * INNER, HIDDEN // 32, 16)),
            "gate_up_proj_scales": ("U8", (EXPERTS, 2 * INNER, HIDDEN // 32)),
        },
        (2 * INNER, HIDDEN),
    ),
    "MXFP4 down": (
        {
            "down_proj_blocks": ("U8", (EXPERTS, HIDDEN, INNER // 32, 16)),
            "down_proj_scales": ("U8", (EXPERTS, HIDDEN, INNER // 32)),
        },
        (HIDDEN, INNER),
    ),
    "FP8 by block": (
        {
            "gate_up_proj": ("F8_E4M3", (EXPERTS, 2 * INNER, HIDDEN)),
            "gate_up_proj_scale_inv": ("F32", (EXPERTS, 2 * INNER // 128, HIDDEN // 128)),
        },
        (2 * INNER, HIDDEN),
    ),
    "biases of gate and up": ({"gate_up_proj_bias": ("BF16", (EXPERTS, 2 * INNER))}, (2 * INNER,)),
    "biases of down": ({"down_proj_bias": ("BF16", (EXPERTS, HIDDEN))}, (HIDDEN,)),
}


@pytest.mark.parametrize("tensors", FUSED)
def test_experts_in_one_tensor_are_as_many_parameters(tensors: str) -> None:
    by_name, dims = FUSED[tensors]
    found = only(read(in_layers(by_name, "mlp.experts"), **MOE))
    assert (found.shape, found.copies, found.layers, found.fused) == (dims, EXPERTS, (0, 1), True)
    assert found.part == ("bias" if len(dims) == 1 else "routed_expert")


def test_a_scale_that_all_experts_of_a_tensor_share_is_counted_once() -> None:
    tensors: Tensors = {
        "gate_up_proj": ("F8_E4M3", (3, 2 * INNER, HIDDEN)),
        "gate_up_proj_scale": ("F32", ()),
    }
    found = read(in_layers(tensors, "mlp.experts"), **MOE | {"num_experts": 3})
    weight, scale = found.parameters
    assert (weight.part, weight.stored_bytes, weight.copies) == ("routed_expert", 2 * INNER * HIDDEN, 3)
    assert (scale.part, scale.split, scale.stored_bytes, scale.layers) == ("scale", "none", 4, (0, 1))
    assert found.unknown == ()


@pytest.mark.parametrize(
    "dims", [(), (0,), (5,), (3, 0), (2, 3, 4), (2, 3, 4, 5)], ids=lambda dims: "x".join(map(str, dims)) or "scalar"
)
@pytest.mark.parametrize("dtype", ["I32", "U8"])
def test_packed_weights_of_odd_shapes_keep_their_bytes(dtype: str, dims: Dims) -> None:
    for ending in ("weight", "weight_packed", "qweight"):
        read({f"model.layers.0.mlp.down_proj.{ending}": (dtype, dims), "model.layers.0.mlp.down_proj.scales": ("F32", dims)})
        read({f"model.layers.0.mlp.experts.down_proj.{ending}": (dtype, dims)}, **MOE)
    read({"model.layers.0.mlp.experts.down_proj_blocks": (dtype, dims)}, **MOE)
