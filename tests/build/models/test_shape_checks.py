"""A config that does not describe the tensors beside it is refused, with every number that differs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from oracle import LATENT
from stored import CONFIG, MOE, Tensors, stored

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.models.shape_checks import check_shapes
from roundhouse.errors import ModelError

LATENTS = {**CONFIG, **LATENT, "architectures": ["DeepseekV3ForCausalLM"]}
EXPERTS = {**CONFIG, **MOE, "architectures": ["Qwen3MoeForCausalLM"]}


def tensors_of(config: dict[str, Any], **also: Any) -> Tensors:
    """Plain tensors as the config says, and others."""
    found: Tensors = {}
    for parameter in inventory_from_shape(shape_from_config(config, stored_dtype=None)).parameters:
        for layer in parameter.layers or (0,):
            for copy in range(parameter.copies):
                name = parameter.name.replace("*", str(layer), 1).replace("*", str(copy))
                found[name] = ("BF16", parameter.shape)
    return found | also


def check(config: dict[str, Any], tensors: Tensors) -> None:
    check_shapes(shape_from_config(config, stored_dtype=None), stored(tensors), Path("folder"))


@pytest.mark.parametrize("config", [CONFIG, LATENTS, EXPERTS, LATENTS | {"num_nextn_predict_layers": 1}])
def test_what_fits_is_accepted(config: dict[str, Any]) -> None:
    check(config, tensors_of(config))


def test_a_head_size_that_does_not_fit_is_shown_beside_what_is_stored() -> None:
    """Case 9: hidden 2560 and 32 heads are 80 each, unless the config says 128."""
    said = {"hidden_size": 2560, "num_attention_heads": 32, "num_key_value_heads": 8}
    right = tensors_of(CONFIG | said | {"head_dim": 128})
    assert right["model.layers.0.self_attn.q_proj.weight"] == ("BF16", (4096, 2560))
    check(CONFIG | said | {"head_dim": 128}, right)
    for absent in ({}, {"head_dim": None}):
        with pytest.raises(
            ModelError, match=r"q_proj\.weight is \[4096, 2560\].*num_attention_heads x head_dim = 2560"
        ) as refused:
            check(CONFIG | said | absent, right)
        assert "head_dim" in str(refused.value.hint)
    with pytest.raises(ModelError, match="and 4 more"):
        check(CONFIG | said, right)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 128, "head_dim": 32}, r"model\.embed_tokens\.weight is \[1024, 256\].*hidden_size = 128"),
        ({"num_key_value_heads": 2}, r"k_proj\.weight is \[128, 256\].*num_key_value_heads x head_dim = 64"),
        ({"vocab_size": 2048}, r"embed_tokens\.weight is \[1024, 256\].*vocab_size = 2048"),
        ({"intermediate_size": 1024}, r"mlp\.gate_proj\.weight is \[512, 256\].*intermediate_size = 1024"),
        ({"num_hidden_layers": 4}, "there are no tensors of layers 2 to 3, config.json says num_hidden_layers 4"),
        ({"num_hidden_layers": 1}, "there are tensors of layer 1, config.json says num_hidden_layers 1"),
    ],
)
def test_every_number_that_differs_is_shown(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        check(CONFIG | changes, tensors_of(CONFIG))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kv_lora_rank": 16}, r"kv_a_proj_with_mqa\.weight is \[16, 256\].*kv_lora_rank \+ qk_rope_head_dim = 20"),
        ({"v_head_dim": 8}, r"kv_b_proj\.weight is \[128, 12\].*= 144"),
        ({"num_hidden_layers": 1}, "num_hidden_layers 1$"),
    ],
)
def test_latents_are_compared_too(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match="does not fit the weights") as refused:
        check(LATENTS | changes, tensors_of(LATENTS))
    assert re.search(message, refused.value.message)


def test_layers_behind_the_others_must_be_announced() -> None:
    further = LATENTS | {"num_nextn_predict_layers": 1}
    check(further, tensors_of(LATENTS))  # announced and not stored: cut off by whoever uploaded it
    with pytest.raises(ModelError, match="there are tensors of layer 2"):
        check(LATENTS, tensors_of(further))
    with pytest.raises(ModelError, match=r"there are tensors of layer 3,.*num_nextn_predict_layers 1"):
        check(further, tensors_of(LATENTS | {"num_nextn_predict_layers": 2}))


def test_a_model_without_a_head_must_be_tied() -> None:
    headless = {name: tensor for name, tensor in tensors_of(CONFIG).items() if name != "lm_head.weight"}
    with pytest.raises(ModelError, match=r"there is no lm_head\.weight"):
        check(CONFIG, headless)
    check(CONFIG | {"tie_word_embeddings": True}, headless)


@pytest.mark.parametrize("told", [{"quant_method": "awq", "bits": 4, "group_size": 128}, {"quant_method": "fp8"}])
def test_quantization_that_no_tensor_shows_is_not_believed(told: dict[str, Any]) -> None:
    quantized = CONFIG | {"quantization_config": told}
    with pytest.raises(ModelError, match="all tensors are plain floats without scales"):
        check(quantized, tensors_of(CONFIG))
    check(quantized, tensors_of(CONFIG, **{"model.layers.0.mlp.up_proj.weight_scale": ("F32", (1,))}))


def test_towers_and_layers_named_for_further_tokens_have_sizes_of_their_own() -> None:
    beside: Tensors = {
        "vision_tower.layers.26.self_attn.q_proj.weight": ("BF16", (16, 16)),
        "audio_tower.layers.9.self_attn.k_proj.weight": ("BF16", (16, 16)),
        "mtp.layers.5.self_attn.o_proj.weight": ("BF16", (16, 16)),
    }
    check(CONFIG, tensors_of(CONFIG, **beside))


@pytest.mark.parametrize("tensor", [("U8", (128, 256)), ("I32", (256, 32)), ("BF16", (4, 256, 256))])
def test_what_is_packed_is_left_to_those_who_know_the_packing(tensor: tuple[str, tuple[int, ...]]) -> None:
    check(CONFIG, tensors_of(CONFIG, **{"model.layers.0.self_attn.q_proj.weight": tensor}))


def test_names_that_mean_nothing_here_are_no_reason_to_refuse() -> None:
    check(CONFIG, {"transformer.h.0.attn.c_attn.weight": ("BF16", (256, 768)), "transformer.wte.weight": ("BF16", (1024, 256))})
