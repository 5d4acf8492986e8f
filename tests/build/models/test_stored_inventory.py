"""What the tensors of real files are: shapes behind every packing, and not one stored byte lost or counted twice."""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from oracle import config_of, shape_like
from stored import BITS, EXPERTS, HIDDEN, INNER, MOE, Dims, Tensors, in_layers, only, read, shape_of, stored

from roundhouse.build.engine import Engine
from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.models.parameters import Inventory
from roundhouse.build.models.sources import read_model
from roundhouse.build.models.stored_inventory import inventory_from_checkpoint


@pytest.mark.parametrize("name", ["block_sparse_moe.experts.{}.w1", "mlp.experts.{}.gate_proj"])
def test_experts_in_tensors_of_their_own_are_copies(name: str) -> None:
    tensors = {f"model.layers.1.{name.format(n)}.weight": ("BF16", (INNER, HIDDEN)) for n in range(EXPERTS)}
    found = only(read(tensors, **MOE))
    assert (found.part, found.split, found.copies, found.layers, found.fused) == ("routed_expert", "outputs", 4, (1,), False)


def test_layers_that_differ_are_different_parameters() -> None:
    tensors: Tensors = {
        "model.layers.0.mlp.down_proj.weight": ("BF16", (HIDDEN, 512)),
        "model.layers.1.mlp.down_proj.weight": ("F8_E4M3", (HIDDEN, 512)),
    }
    assert [(p.layers, p.stored_bytes) for p in read(tensors).parameters] == [((0,), 2 * HIDDEN * 512), ((1,), HIDDEN * 512)]


def test_layers_behind_the_others_predict_further_tokens() -> None:
    names = ("eh_proj.weight", "shared_head.head.weight", "embed_tokens.weight", "mystery.weight", "mlp.down_proj.weight")
    tensors = {f"model.layers.2.{name}": ("BF16", (HIDDEN, 2 * HIDDEN)) for name in names}
    found = read(tensors, num_nextn_predict_layers=1)
    assert all(parameter.mtp and parameter.layers == (2,) for parameter in found.parameters)
    assert found.elements == 0
    assert found.unknown == ("model.layers.*.mystery.weight",)


def test_layers_named_for_further_tokens_are_no_layers_of_the_model() -> None:
    assert only(read({"mtp.layers.0.self_attn.o_proj.weight": ("BF16", (HIDDEN, HIDDEN))})).mtp


@pytest.mark.parametrize(
    "name",
    [
        "vision_tower.encoder.layers.26.self_attn.q_proj.weight",
        "model.visual.blocks.3.mlp.down_proj.weight",
        "mm_projector.linear_1.weight",
        "multi_modal_projector.lm_head.weight",
        "audio_tower.layers.5.mlp.gate_proj.weight",
    ],
)
def test_towers_are_held_whole_and_never_quantized(name: str) -> None:
    found = read({name: ("BF16", (HIDDEN, HIDDEN))})
    assert (only(found).part, only(found).split, only(found).is_linear) == ("other", "none", False)
    assert not only(found).mtp
    assert found.unknown == ()


@pytest.mark.parametrize("prefix", ["model.", "model.language_model.", "language_model.model."])
def test_a_language_model_may_stand_anywhere(prefix: str) -> None:
    found = read({f"{prefix}layers.{n}.self_attn.k_proj.weight": ("BF16", (128, HIDDEN)) for n in range(2)})
    assert (only(found).part, only(found).split, only(found).layers) == ("attention", "kv_heads", (0, 1))


@pytest.mark.parametrize("name", ["lm_head.weight", "language_model.lm_head.weight"])
def test_a_tied_head_is_not_counted_twice(name: str) -> None:
    tensors: Tensors = {
        "model.embed_tokens.weight": ("BF16", (1024, HIDDEN)),
        name: ("BF16", (1024, HIDDEN)),
    }
    assert len(read(tensors).parameters) == 2
    tied = inventory_from_checkpoint(shape_of(tie_word_embeddings=True), stored(tensors))
    assert (only(tied).part, tied.stored_bytes) == ("embedding", 2 * 1024 * HIDDEN)


@pytest.mark.parametrize("name", ["self_attn.k_scale", "self_attn.kv_scale", "attention.kv_cache_scaling_factor"])
def test_a_scale_of_the_cache_stands_by_itself(name: str) -> None:
    found = read({f"model.layers.{n}.{name}": ("F32", (1,)) for n in range(2)})
    assert (only(found).part, only(found).split, only(found).layers) == ("scale", "none", (0, 1))
    assert found.unknown == ()


@pytest.mark.parametrize("scale", ["k_scale", "output_scale"])
def test_a_scale_of_the_cache_beside_a_weight_belongs_to_it(scale: str) -> None:
    tensors: Tensors = {"weight": ("BF16", (128, HIDDEN)), scale: ("F32", (1,))}
    assert only(read(in_layers(tensors, "self_attn.k_proj"))).stored_bytes == 2 * 128 * HIDDEN + 4


def test_tensors_whose_meaning_is_not_known_are_listed_and_counted() -> None:
    tensors: Tensors = {
        "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (16,)),
        "model.layers.1.self_attn.rotary_emb.inv_freq": ("F32", (16,)),
        "model.layers.0.mixer.weight": ("BF16", (8, 8)),
        "model.layers.0.lost.weight_scale": ("F32", (8,)),
        "odd_scales": ("F32", (3,)),
    }
    found = read(tensors)
    assert found.unknown == (
        "model.layers.*.lost.weight_scale",
        "model.layers.*.mixer.weight",
        "model.layers.*.self_attn.rotary_emb.inv_freq",
        "odd_scales",
    )
    assert all((p.part, p.split, p.is_linear) == ("other", "none", False) for p in found.parameters)


def rows(found: Inventory) -> Counter[tuple[Any, ...]]:
    """What the parameters are, whatever their names."""
    return Counter((p.part, p.split, p.shape, p.layers, p.copies) for p in found.parameters if not p.mtp)


def total(found: Inventory) -> int:
    return sum(p.stored_bytes * p.count for p in found.parameters if p.stored_bytes is not None)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "mistral"])
def test_a_saved_model_is_what_its_config_says(tiny_model, family: str) -> None:
    model = read_model(tiny_model(family))
    made, found = inventory_from_shape(model.shape), model.inventory
    assert rows(found) == rows(made)
    assert {p.name for p in found.parameters} == {p.name for p in made.parameters}
    assert found.stored_bytes == made.stored_bytes == model.checkpoint.tensor_bytes
    assert model.shape.unread == ()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory):
    """The folder of a small bf16 model as transformers saves it."""
    import torch
    from transformers import AutoModelForCausalLM

    def save(family: str) -> Path:
        folder = tmp_path_factory.mktemp(family)
        AutoModelForCausalLM.from_config(config_of(family), dtype=torch.bfloat16).save_pretrained(folder)
        return folder

    return save


@pytest.mark.parametrize(
    "family", ["mixtral", "qwen2_moe", "qwen3_moe", "glm4_moe", "deepseek_v3", "glm_moe_dsa", "gemma3_text"]
)
def test_a_saved_model_of_another_family_is_what_its_config_says(saved, family: str) -> None:
    model = read_model(saved(family))
    found = model.inventory
    assert rows(found) == rows(inventory_from_shape(model.shape))
    assert total(found) == model.checkpoint.tensor_bytes
    assert (found.unknown, model.shape.unread) == ((), ())


def test_a_saved_model_with_fused_experts_has_the_same_elements_in_every_part(saved) -> None:
    model = read_model(saved("gpt_oss"))

    def by_part(inventory: Inventory) -> Counter[tuple[str, Dims]]:
        elements: Counter[Any] = Counter()
        for p in inventory.parameters:
            elements[p.part, p.layers] += p.elements * p.count
        return elements

    assert by_part(model.inventory) == by_part(inventory_from_shape(model.shape))
    assert total(model.inventory) == model.checkpoint.tensor_bytes
    fused = {p.name.rpartition(".")[2]: p.shape for p in model.inventory.parameters if p.fused}
    assert fused["gate_up_proj"] == (2 * model.shape.intermediate, model.shape.hidden)
    assert fused["down_proj"] == (model.shape.hidden, model.shape.intermediate)


@pytest.mark.parametrize("weights", ["int4_awq", "fp8"])
def test_a_built_engines_checkpoint_is_the_plain_model_again(tiny_model, build_engine, weights: str) -> None:
    engine: Engine = build_engine(weights=weights)
    plain, quantized = read_model(tiny_model("llama")), read_model(engine.checkpoint)
    assert quantized.shape.quantization is not None
    assert quantized.shape.quantization.format == ("int4" if weights == "int4_awq" else "fp8")
    assert rows(quantized.inventory) == rows(plain.inventory)
    assert total(quantized.inventory) == quantized.checkpoint.tensor_bytes < plain.checkpoint.tensor_bytes
    assert quantized.inventory.unknown == ()


def test_headers_alone_are_enough(tmp_path: Path) -> None:
    """Case 12: an FP8 checkpoint whose shards are headers and holes takes what its headers say, not parameters x dtype."""
    config = config_of("deepseek_v3", num_nextn_predict_layers=0)
    shape = shape_like(config, "DeepseekV3ForCausalLM")
    tensors: Tensors = {}
    for p in inventory_from_shape(shape).parameters:
        for layer in p.layers or (0,):
            for copy in range(p.copies):
                name = p.name.replace("*", str(layer), 1).replace("*", str(copy))
                tensors[name] = ("F8_E4M3" if p.is_linear else "F32" if "correction" in name else "BF16", p.shape)
                if p.is_linear:
                    tensors[f"{name}_scale_inv"] = ("F32", (1, 1))
    header, end = {}, 0
    for name, (dtype, dims) in tensors.items():
        start, end = end, end + math.prod(dims) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(dims), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    quantized = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    written = {**config.to_dict(), "architectures": ["DeepseekV3ForCausalLM"], "quantization_config": quantized}
    (tmp_path / "config.json").write_text(json.dumps(written))
    model = read_model(tmp_path)
    assert model.shape.dtype == "bf16"
    assert total(model.inventory) == model.checkpoint.tensor_bytes == end
    assert rows(model.inventory) == rows(inventory_from_shape(shape))
    assert end < 2 * model.inventory.elements
