"""Tensors without files: exactly those that transformers makes for the same config."""

from __future__ import annotations

from typing import Any

import pytest
from oracle import FAMILIES, LATENT, TINY_MODEL, config_of, kinds_of, model_of, shape_like, total_of

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.families import FAMILIES as KNOWN
from roundhouse.build.models.inventory import inventory_from_shape, is_known_family
from roundhouse.build.models.parameters import Inventory
from roundhouse.build.models.shipped import shipped_config, shipped_names
from roundhouse.errors import ModelError

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((family, {}) for family in FAMILIES),
    ("llama", {"tie_word_embeddings": True}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("qwen3", {"attention_bias": True, "tie_word_embeddings": True}),
    ("qwen3_moe", {"attention_bias": True, "decoder_sparse_step": 1, "mlp_only_layers": [0, 2]}),
    ("gemma3_text", {"attention_bias": True, "tie_word_embeddings": False}),
    ("qwen2_moe", {"qkv_bias": False}),
    ("gpt_oss", {"attention_bias": False}),
    ("glm4_moe", {"attention_bias": True, "use_qk_norm": True}),
    ("glm4_moe", {"first_k_dense_replace": 0}),
    ("deepseek_v2", {"q_lora_rank": None, "mlp_bias": True}),
    ("deepseek_v3", {"q_lora_rank": None}),
    ("deepseek_v3", {"attention_bias": True, "first_k_dense_replace": 3}),
    ("deepseek_v32", {"mlp_layer_types": ["sparse", "dense", "sparse"]}),
    ("glm_moe_dsa", {"attention_bias": True, "indexer_types": ["full", *["shared"] * 6, "full"]}),
]


def kinds(inventory: Inventory, *, experts: bool) -> dict[tuple[str, tuple[int, ...]], int]:
    """(name, shape) → how many, of the routed experts or of everything else; layers that predict further tokens left out."""
    return {
        (parameter.name, parameter.shape): parameter.count
        for parameter in inventory.parameters
        if not parameter.mtp and (".experts." in parameter.name) is experts
    }


@pytest.mark.parametrize(("family", "changes"), VARIANTS)
def test_it_is_what_transformers_makes(family: str, changes: dict[str, Any]) -> None:
    config = config_of(family, **changes)
    model = model_of(config)
    found = inventory_from_shape(shape_like(config, type(model).__name__))
    theirs = kinds_of(model)
    assert found.elements == total_of(theirs)
    assert kinds(found, experts=False) == {kind: n for kind, n in theirs.items() if ".experts." not in kind[0]}
    fused = {kind: n for kind, n in theirs.items() if ".experts." in kind[0]}
    assert total_of(kinds(found, experts=True)) == total_of(fused)


def test_every_known_family_is_compared_with_transformers() -> None:
    compared = {type(model_of(config_of(family))).__name__ for family in FAMILIES}
    assert compared | {"KimiK25ForConditionalGeneration", "Gemma3ForConditionalGeneration"} == set(KNOWN)


def test_the_language_model_beside_kimis_vision_tower_is_what_transformers_makes() -> None:
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText

    text = {**TINY_MODEL, **FAMILIES["deepseek_v3"], "model_type": "deepseek_v3"}
    vision = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = AutoConfig.for_model("kimi_k25", text_config=text, vision_config=vision, tie_word_embeddings=False)
    with torch.device("meta"):
        theirs = kinds_of(AutoModelForImageTextToText.from_config(config))
    tower = {kind: n for kind, n in theirs.items() if "vision_tower" in kind[0] or "mm_projector" in kind[0]}
    written = {**config.to_dict(), "architectures": ["KimiK25ForConditionalGeneration"], "other_params": total_of(tower)}
    assert inventory_from_shape(shape_from_config(written, stored_dtype="bfloat16")).elements == total_of(theirs)


@pytest.mark.parametrize("tied", [True, False])
def test_the_language_model_beside_gemmas_vision_tower_is_what_transformers_makes(tied: bool) -> None:
    """The tower's own size is not known without files: its config is listed as not read."""
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText

    text = {**TINY_MODEL, **FAMILIES["gemma3_text"], "model_type": "gemma3_text", "tie_word_embeddings": tied}
    vision = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "image_size": 28}
    config = AutoConfig.for_model("gemma3", text_config=text, vision_config=vision, tie_word_embeddings=tied)
    with torch.device("meta"):
        theirs = kinds_of(AutoModelForImageTextToText.from_config(config))
    language = {kind: n for kind, n in theirs.items() if "vision" not in kind[0] and "multi_modal" not in kind[0]}
    shape = shape_from_config(
        {**config.to_dict(), "architectures": ["Gemma3ForConditionalGeneration"]}, stored_dtype="bfloat16"
    )
    found = inventory_from_shape(shape)
    named = {(name.replace("model.language_model.", "model."), dims): n for (name, dims), n in language.items()}
    assert kinds(found, experts=False) == named
    assert "vision_config" in shape.unread


def test_gemma_as_published_is_known_by_its_config() -> None:
    """Numbers that the text config leaves out are the family's own."""
    published = {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "model_type": "gemma3",
        "mm_tokens_per_image": 256,
        "text_config": {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "model_type": "gemma3_text",
            "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        },
        "torch_dtype": "bfloat16",
        "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27},
    }
    shape = shape_from_config(published, stored_dtype=None)
    assert inventory_from_shape(shape).elements == 3_880_263_168  # of the text-only model
    assert (shape.heads, shape.head_dim, shape.tied_embeddings, len(shape.sliding_layers)) == (8, 256, True, 29)
    assert "vision_config" in shape.unread


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_shape_has_as_many_parameters_as_in_transformers(name: str) -> None:
    from transformers import AutoConfig

    config = shipped_config(name)
    shape = shape_from_config(config, stored_dtype="bfloat16")
    theirs = {"kimi_k2": "deepseek_v3", "kimi_k25": "deepseek_v3"}.get(config["model_type"], config["model_type"])
    beside = ("model_type", "architectures", "rope_scaling", "other_params", "dtype", "quantization_config")
    numbers = {key: value for key, value in config.items() if key not in beside}
    made = kinds_of(model_of(AutoConfig.for_model(theirs, **numbers)))
    assert inventory_from_shape(shape).elements - shape.other_params == total_of(made)


def test_a_layer_for_multi_token_prediction_is_stored_and_no_parameter_of_the_model() -> None:
    """GLM-5.2 stores 791 tensors of one such layer, an indexer among them, and no embedding or head of its own."""
    found = inventory_from_shape(shape_from_config(shipped_config("glm-5.2"), stored_dtype="bfloat16"))
    layer = [parameter for parameter in found.parameters if parameter.mtp]
    assert sum(parameter.count for parameter in layer) == 791
    assert {parameter.layers for parameter in layer} == {(78,)}
    assert any(parameter.part == "indexer" for parameter in layer)
    assert not any(parameter.part in ("embedding", "head") for parameter in layer)
    assert found.stored_bytes == 2 * (found.elements + sum(p.elements * p.count for p in layer))


def test_deepseek_stores_an_embedding_and_a_head_with_its_further_layer() -> None:
    found = inventory_from_shape(shape_from_config(shipped_config("deepseek-v3"), stored_dtype="bfloat16"))
    assert {parameter.part for parameter in found.parameters if parameter.mtp} >= {"embedding", "head"}


def test_a_dense_model_may_predict_further_tokens_too() -> None:
    config = {**TINY_MODEL, **LATENT, "num_nextn_predict_layers": 2, "architectures": ["DeepseekV3ForCausalLM"]}
    found = inventory_from_shape(shape_from_config(config, stored_dtype="bfloat16"))
    assert {parameter.layers for parameter in found.parameters if parameter.mtp} == {(3, 4)}
    assert "mlp" in {parameter.part for parameter in found.parameters if parameter.mtp}


@pytest.mark.parametrize("named", [["OddForCausalLM"], [], None])
def test_an_unknown_family_is_refused_and_its_files_asked_for(named: list[str] | None) -> None:
    shape = shape_from_config({**TINY_MODEL, "architectures": named, "model_type": "odd"}, stored_dtype="bfloat16")
    assert not is_known_family(shape)
    with pytest.raises(ModelError, match=r"the tensors of (OddForCausalLM|odd) are not known") as refused:
        inventory_from_shape(shape)
    assert "LlamaForCausalLM" in str(refused.value.hint)
