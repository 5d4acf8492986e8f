from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roundhouse.build.models.shape import read_config, shape_from_config
from roundhouse.build.planner.kv_layout import KvDtype, layout_for
from roundhouse.errors import ModelError

BASE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 1024,
    "max_position_embeddings": 512,
    "dtype": "bfloat16",
}


def shape(**changes: Any) -> Any:
    return shape_from_config(BASE | changes, stored_dtype="bfloat16")


def test_an_explicit_head_size_wins_and_null_is_absent() -> None:
    assert shape(hidden_size=2560, num_attention_heads=32, num_key_value_heads=8, head_dim=128).head_dim == 128
    assert shape(head_dim=None).head_dim == 32


def test_kv_heads_default_to_heads() -> None:
    assert shape(num_key_value_heads=None).kv_heads == 8


@pytest.mark.parametrize(
    ("changes", "dtype", "source"),
    [
        ({"dtype": "bfloat16", "torch_dtype": None}, "bf16", "dtype"),
        ({"dtype": None, "torch_dtype": "float16"}, "fp16", "torch_dtype"),
        ({"dtype": None}, "bf16", "safetensors headers"),
    ],
)
def test_the_dtype_that_was_used_is_said(changes: dict[str, Any], dtype: str, source: str) -> None:
    found = shape(**changes)
    assert found.dtype == dtype
    assert source in found.dtype_from


def test_a_missing_dimension_is_named() -> None:
    with pytest.raises(ModelError, match="has no hidden_size"):
        shape(hidden_size=None)


@pytest.mark.parametrize("value", [0, -1, "64", 1.5, True])
def test_an_impossible_dimension_is_named(value: object) -> None:
    with pytest.raises(ModelError, match="num_hidden_layers"):
        shape(num_hidden_layers=value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("architectures", "LlamaForCausalLM"),
        ("architectures", [1]),
        ("quantization_config", "fp8"),
        ("rope_scaling", "yarn"),
        ("rope_parameters", [1]),
        ("sliding_window", "x"),
    ],
)
def test_a_key_of_the_wrong_kind_is_named(key: str, value: object) -> None:
    with pytest.raises(ModelError, match=key):
        shape(**{key: value})


@pytest.mark.parametrize("level", ["outer", "inner"])
def test_a_language_model_nested_beside_a_vision_tower_is_read(tmp_path: Path, level: str) -> None:
    quantized = {"quantization_config": {"quant_method": "fp8"}}
    inner = {key: value for key, value in BASE.items() if key != "architectures"} | (quantized if level == "inner" else {})
    outer = {"architectures": ["KimiK25ForConditionalGeneration"], "model_type": "kimi_k25", "vision_config": {}}
    (tmp_path / "config.json").write_text(json.dumps(outer | {"text_config": inner} | (quantized if level == "outer" else {})))
    found = shape_from_config(read_config(tmp_path), stored_dtype="bfloat16")
    assert (found.architecture, found.hidden, found.quantized_as) == ("KimiK25ForConditionalGeneration", 256, "fp8")


@pytest.mark.parametrize(("dtype", "bytes_per_token"), [("bf16", 70_272), ("fp8", 35_136)])
def test_a_latent_is_counted_as_it_is_stored_not_expanded(dtype: KvDtype, bytes_per_token: int) -> None:
    latent = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_hidden_layers": 61, "num_attention_heads": 64}
    assert layout_for(shape(hidden_size=7168, **latent), dtype).bytes_per_token == bytes_per_token


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ModelError, match="not divisible"):
        shape(num_attention_heads=7)


def test_two_quantization_configs_that_disagree_are_both_shown() -> None:
    config = BASE | {"quantization_config": {"quant_method": "fp8"}}
    file = {"quantization": {"quant_algo": "W4A16_AWQ", "group_size": 128, "kv_cache_quant_algo": "FP8"}}
    with pytest.raises(ModelError, match=r"disagree.*'fp8'.*'W4A16_AWQ'"):
        shape_from_config(config, stored_dtype="bfloat16", quant_config=file)


def test_two_quantization_configs_that_agree_are_one() -> None:
    config = BASE | {"quantization_config": {"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"}}
    file = {"quantization": {"quant_algo": "W4A16_AWQ"}}
    assert shape_from_config(config, stored_dtype="bfloat16", quant_config=file).quantized_as == "W4A16_AWQ"


@pytest.mark.parametrize(("text", "message"), [("{", "not valid JSON"), ("[1]", "holds a list")])
def test_a_broken_config_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelError, match=message):
        read_config(tmp_path)


def test_a_folder_without_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        read_config(tmp_path)
