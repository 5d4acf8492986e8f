"""A tensor that a layer should have and has not is found, in every family, and named with its layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from oracle import FAMILIES, config_of, model_of, shape_like
from stored import Tensors, stored

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.models.shape import ModelShape
from roundhouse.build.models.shape_checks import check_shapes
from roundhouse.build.models.shipped import shipped_config
from roundhouse.errors import ModelError

CHOSEN: dict[str, dict[str, Any]] = {
    "llama": {"attention_bias": True, "mlp_bias": True},
    "glm4_moe": {"use_qk_norm": True, "attention_bias": True},
}
"""What a config asks for beside what its family always has."""


def made_by_transformers(family: str, **changes: Any) -> tuple[ModelShape, Tensors]:
    config = config_of(family, **CHOSEN.get(family, {}), **changes)
    model = model_of(config)
    tensors: Tensors = {name: ("BF16", tuple(tensor.shape)) for name, tensor in model.state_dict().items()}
    return shape_like(config, type(model).__name__), tensors


def check(shape: ModelShape, tensors: Tensors) -> None:
    check_shapes(shape, stored(tensors), Path("folder"))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_kind_of_tensor_is_missed(family: str) -> None:
    shape, tensors = made_by_transformers(family)
    check(shape, tensors)
    layer = f"model.layers.{shape.layers - 1}."
    of_layer = [name for name in tensors if name.startswith(layer) and ".experts." not in name]
    assert len(of_layer) >= 7
    for name in of_layer:
        with pytest.raises(ModelError, match=f"there is no {name.removeprefix(layer)} in layer {shape.layers - 1}\n"):
            check(shape, {other: tensor for other, tensor in tensors.items() if other != name})
    for name in ("model.norm.weight", "model.embed_tokens.weight"):
        with pytest.raises(ModelError, match=f"there is no {name}\n"):
            check(shape, {other: tensor for other, tensor in tensors.items() if other != name})


def test_layers_that_lack_the_same_are_told_of_together() -> None:
    shape, tensors = made_by_transformers("llama", num_hidden_layers=8)
    for layer in (0, 2, 3):
        del tensors[f"model.layers.{layer}.mlp.up_proj.weight"]
    with pytest.raises(ModelError, match=r"there is no mlp\.up_proj\.weight in layers 0, 2, 3\n"):
        check(shape, tensors)
    for layer in (4, 5, 6):
        del tensors[f"model.layers.{layer}.mlp.up_proj.weight"]
    with pytest.raises(ModelError, match=r"in layers 0, 2, 3, 4 and 2 more\n"):
        check(shape, tensors)


@pytest.mark.parametrize(
    ("family", "old", "new"),
    [
        ("mixtral", ".mlp.", ".block_sparse_moe."),
        ("gemma3_text", "model.", "language_model.model."),
        ("gemma3_text", "model.", "model.language_model."),
        ("llama", "model.", ""),
    ],
)
def test_names_that_differ_in_form_are_the_same_tensors(family: str, old: str, new: str) -> None:
    shape, tensors = made_by_transformers(family)
    renamed = {name.replace(old, new): tensor for name, tensor in tensors.items()}
    check(shape, renamed)
    lost = next(name for name in renamed if name.endswith("layers.1.input_layernorm.weight"))
    del renamed[lost]
    with pytest.raises(ModelError, match=r"there is no input_layernorm\.weight in layer 1\n"):
        check(shape, renamed)


def test_a_whole_layer_that_is_missing_is_told_once() -> None:
    shape, tensors = made_by_transformers("llama")
    left = {name: tensor for name, tensor in tensors.items() if ".layers.1." not in name}
    with pytest.raises(ModelError, match=r"weights: there are no tensors of layer 1, config\.json says num_hidden_layers 3\n"):
        check(shape, left)


def test_quantized_weights_have_names_of_their_own() -> None:
    config = config_of("llama").to_dict() | {"architectures": ["LlamaForCausalLM"]}
    shape = shape_from_config(config | {"quantization_config": {"quant_method": "gptq"}}, stored_dtype="bfloat16")
    tensors = made_by_transformers("llama")[1]
    packed = {name.replace("proj.weight", "proj.qweight"): ("I32", dims) for name, (_, dims) in tensors.items()}
    check(shape, packed)


def test_experts_and_vision_beside_kimis_language_model_are_let_be() -> None:
    config = {key: value for key, value in shipped_config("kimi-k2.6").items() if key != "quantization_config"}
    shape = shape_from_config(config, stored_dtype="bfloat16")
    tensors: Tensors = {"vision_tower.encoder.layers.0.norm0.weight": ("BF16", (8,))}
    for parameter in inventory_from_shape(shape).parameters:
        for layer in parameter.layers or (0,):
            name = parameter.name.replace("*", str(layer), 1)
            if ".experts." not in name and parameter.part != "other":
                tensors[f"language_model.{name}"] = ("BF16", parameter.shape)
    check(shape, tensors)
    del tensors["language_model.model.layers.60.mlp.shared_experts.up_proj.weight"]
    with pytest.raises(ModelError, match=r"there is no mlp\.shared_experts\.up_proj\.weight in layer 60\n"):
        check(shape, tensors)
