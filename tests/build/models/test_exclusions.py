"""Which modules of a quantized input stayed 16-bit, by lists as real checkpoints carry them."""

from __future__ import annotations

from typing import Any

import pytest
from oracle import FAMILIES, TINY_MODEL
from stored import Tensors, in_layers, only, read

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.exclusions import exclusion
from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.models.shape import InputQuantization
from roundhouse.build.models.shipped import shipped_config

LAYERS = range(61)
KIMI = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"]
MODELOPT = ["lm_head", "model.embed_tokens", *(f"model.layers.{n}.self_attn*" for n in LAYERS), "model.layers.3*", "*router*"]
GPT_OSS = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
COMPRESSED = ["lm_head", *(f"model.layers.{n}.mlp.gate" for n in LAYERS), "model.layers.2.mlp.down_proj"]


LISTS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "Kimi K2.6": (
        KIMI,
        ["language_model.layers.5.self_attn.q_a_proj", "layers.0.mlp.up_proj", "layers.1.mlp.shared_experts.up_proj"],
        ["layers.1.mlp.experts.17.up_proj", "language_model.layers.1.mlp.experts.380.down_proj"],
    ),
    "ModelOpt": (
        MODELOPT,
        ["layers.60.self_attn.kv_b_proj", "layers.3.mlp.experts.9.up_proj", "layers.9.mlp.router"],
        ["layers.0.mlp.down_proj", "layers.4.mlp.experts.3.up_proj"],
    ),
    "gpt-oss": (
        GPT_OSS,
        ["layers.7.self_attn.o_proj", "layers.35.mlp.router"],
        ["layers.7.mlp.experts.gate_up_proj"],
    ),
    "compressed-tensors": (
        COMPRESSED,
        ["layers.6.mlp.gate", "layers.2.mlp.down_proj", "language_model.layers.2.mlp.down_proj"],
        ["layers.6.mlp.gate_proj", "layers.12.mlp.down_proj", "layers.2.mlp.experts.2.down_proj"],
    ),
    "AWQ": (
        ["gate"],
        ["layers.0.block_sparse_moe.gate"],
        ["layers.0.mlp.gate_proj", "layers.0.mlp.experts.0.gate_proj"],
    ),
    "nested": (["model.language_model.layers.4"], ["layers.4.mlp.up_proj"], ["layers.14.mlp.up_proj", "layers.40.mlp.up_proj"]),
    "towers": (["visual"], ["visual.blocks.0.mlp.fc1"], ["layers.0.mlp.up_proj"]),
    "none": ([], [], ["layers.0.mlp.up_proj"]),
}
"""Who wrote it → the list, modules of ``model`` that it leaves out, modules that it does not."""


@pytest.mark.parametrize("writer", LISTS)
def test_what_a_list_leaves_out(writer: str) -> None:
    patterns, out, stays_in = LISTS[writer]
    excluded = exclusion(InputQuantization(name="x", format=None, excluded=tuple(patterns)))
    assert [name for name in (*out, *stays_in) if excluded(f"model.{name}.weight")] == out


def test_a_plain_input_leaves_nothing_out() -> None:
    assert not exclusion(None)("lm_head.weight")
    assert exclusion(InputQuantization(name="x", format=None, excluded=("lm_head",)))("lm_head.weight")


def quantized(config: dict[str, Any], method: str, key: str, patterns: list[str]) -> dict[str, tuple[int, ...]]:
    """Layers of the linears that are quantized, by the last words of their names."""
    config = {**config, "quantization_config": {"quant_method": method, key: patterns}}
    found = inventory_from_shape(shape_from_config(config, stored_dtype="bfloat16"))
    return {
        parameter.name.removeprefix("model.layers.*.").removesuffix(".weight"): parameter.layers
        for parameter in found.parameters
        if parameter.is_linear and not parameter.excluded and not parameter.mtp
    }


def test_kimis_routed_experts_alone_are_quantized() -> None:
    config = shipped_config("kimi-k2.6")
    found = quantized(config, "compressed-tensors", "ignore", config["quantization_config"]["ignore"])
    assert found == dict.fromkeys((f"mlp.experts.*.{name}_proj" for name in ("gate", "up", "down")), tuple(range(1, 61)))


def test_layers_that_differ_are_apart() -> None:
    config = {**TINY_MODEL, "num_hidden_layers": 4, "architectures": ["LlamaForCausalLM"]}
    found = quantized(config, "modelopt", "ignore", ["model.layers.0.*", "model.layers.3.mlp", "lm_head"])
    assert found["self_attn.q_proj"] == (1, 2, 3)
    assert found["mlp.down_proj"] == (1, 2)
    every = inventory_from_shape(shape_from_config(config, stored_dtype="bfloat16"))
    split = {**config, "quantization_config": {"quant_method": "fp8", "ignored_layers": ["model.layers.1.mlp.up_proj"]}}
    apart = inventory_from_shape(shape_from_config(split, stored_dtype="bfloat16"))
    assert (apart.elements, apart.stored_bytes) == (every.elements, every.stored_bytes)
    assert len(apart.parameters) == len(every.parameters) + 1


def test_without_a_list_every_linear_is_quantized() -> None:
    config = {**TINY_MODEL, **FAMILIES["deepseek_v3"], "architectures": ["DeepseekV3ForCausalLM"]}
    found = quantized(config, "fp8", "modules_to_not_convert", [])
    assert set(found) >= {"self_attn.kv_b_proj", "mlp.shared_experts.up_proj", "mlp.experts.*.up_proj", "mlp.down_proj"}
    assert "mlp.gate" not in found


def test_a_list_holds_for_files_too() -> None:
    tensors: Tensors = in_layers({"weight": ("BF16", (256, 512))}, "mlp.down_proj")
    quantization = {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.1.mlp.down_proj"]}
    found = read(tensors, quantization_config=quantization)
    assert [(parameter.layers, parameter.excluded) for parameter in found.parameters] == [((0,), False), ((1,), True)]
    assert only(read(tensors)).layers == (0, 1)
