"""Which modules of a quantized input stayed 16-bit, by lists as real checkpoints carry them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from oracle import FAMILIES, TINY_MODEL
from stored import Tensors, in_layers, only, read

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.exclusions import exclusion
from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.models.shape import InputQuantization
from roundhouse.build.models.shipped import shipped_config
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.recipe import recipe_from

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


LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip


def plan_of_blocks(patterns: list[str], tensor_parallel: int = 1) -> Plan:
    """The plan of a Llama of 8 billion parameters in FP8 blocks of 128 by 128, kept as it is, with these left out."""
    told = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": patterns}
    shape = shape_from_config({**LLAMA_8B, "quantization_config": told}, stored_dtype=None)
    recipe = recipe_from(
        {
            "model": "m",
            "weights": "as_is",
            "target": "trtllm-pytorch",
            "tensor_parallel": tensor_parallel,
            "max_seq_len": 4096,
            "page_tokens": 32,
        }
    )
    return make_plan(recipe, shape, inventory_from_shape(shape), hardware_called("h200"))


PROJECTIONS = {"q": (4096, 4096), "k": (1024, 4096), "v": (1024, 4096), "o": (4096, 4096)} | {
    "gate": (14336, 4096),
    "up": (14336, 4096),
    "down": (4096, 14336),
}


def more_in_16_bits(*projections: str, ranks: int = 1) -> int:
    """Bytes that linears of one layer take more on one of several ranks than in blocks: each has a float32 scale."""
    elements = sum(math.prod(PROJECTIONS[name]) for name in projections) // ranks
    return 2 * elements - (elements + 4 * elements // 128**2)


@pytest.mark.parametrize("ranks", [1, 4])
def test_layers_that_a_list_leaves_out_take_the_bytes_of_16_bits(ranks: int) -> None:
    every = plan_of_blocks([], ranks)
    left_out = plan_of_blocks(["model.layers.0", "model.layers.31"], ranks)
    assert left_out.checkpoint_bytes - every.checkpoint_bytes == 2 * more_in_16_bits(*PROJECTIONS)
    assert left_out.weight_bytes_per_gpu - every.weight_bytes_per_gpu == 2 * more_in_16_bits(*PROJECTIONS, ranks=ranks)


@pytest.mark.parametrize(
    ("patterns", "layers", "projections"),
    [
        (["mlp.gate"], 0, ()),  # a router, which this model has not: no gate_proj
        (["model.layers.3"], 1, tuple(PROJECTIONS)),  # and not 30 and 31
        (["mlp.gate_proj"], 32, ("gate",)),
        (["model.layers.7.self_attn"], 1, ("q", "k", "v", "o")),
        (["re:model.layers.(4|5).mlp.(up|down)_proj"], 2, ("up", "down")),
        (["lm_head", "model.embed_tokens"], 0, ()),  # in 16 bits anyway
    ],
)
def test_a_list_changes_the_bytes_of_exactly_what_it_names(
    patterns: list[str], layers: int, projections: tuple[str, ...]
) -> None:
    every, left_out = plan_of_blocks([]), plan_of_blocks(patterns)
    more = layers * more_in_16_bits(*projections)
    assert left_out.checkpoint_bytes - every.checkpoint_bytes == more
    assert left_out.weight_bytes_per_gpu - every.weight_bytes_per_gpu == more


def test_a_list_holds_for_files_too() -> None:
    tensors: Tensors = in_layers({"weight": ("BF16", (256, 512))}, "mlp.down_proj")
    quantization = {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.1.mlp.down_proj"]}
    found = read(tensors, quantization_config=quantization)
    assert [(parameter.layers, parameter.excluded) for parameter in found.parameters] == [((0,), False), ((1,), True)]
    assert only(read(tensors)).layers == (0, 1)
