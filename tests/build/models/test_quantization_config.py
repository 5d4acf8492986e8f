"""What an input is quantized to, from either of the two places that may say so, and never from both when they disagree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored import CONFIG, shape_of

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.shape import InputQuantization, ModelShape
from roundhouse.errors import ModelError


def read(config: dict[str, Any] | None = None, file: dict[str, Any] | None = None) -> InputQuantization | None:
    given = CONFIG | ({} if config is None else {"quantization_config": config})
    return shape_from_config(given, stored_dtype=None, quant_config=file).quantization


def compressed(*weights: dict[str, Any], activations: dict[str, Any] | None = None) -> dict[str, Any]:
    groups = {
        f"group_{n}": {"weights": each, "targets": ["Linear"], "input_activations": activations}
        for n, each in enumerate(weights)
    }
    return {"quant_method": "compressed-tensors", "config_groups": groups}


INT4 = {"type": "int", "num_bits": 4, "group_size": 32}
FP8 = {"type": "float", "num_bits": 8, "strategy": "channel"}


@pytest.mark.parametrize(
    ("config", "form", "group", "bits"),
    [
        ({"quant_method": "fp8"}, "fp8", None, 8),
        ({"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}, "fp8_block", 128, 8),
        ({"quant_method": "fp8", "weight_block_size": [1, 128]}, None, None, 8),
        ({"quant_method": "fp8", "weight_block_size": None}, "fp8", None, 8),
        ({"quant_algo": "FP8_BLOCK_SCALES", "group_size": 128}, "fp8_block", 128, 8),
        ({"quant_method": "mxfp4"}, "mxfp4", 32, 4),
        ({"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm"}, "int4", 64, 4),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 32}, "int4", 32, 4),
        ({"quant_method": "awq"}, "int4", 128, 4),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, None, None, 8),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, None, None, 4),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8", None, 8),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "config_groups": {}}, "nvfp4", 16, 4),
        ({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ", "group_size": 128}, "int4", 128, 4),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ", "group_size": 64}, "int4", 64, 4),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, None, None, None),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}}, "fp8", None, 8),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, None, None, None),
        (compressed(INT4), "int4", 32, 4),
        (compressed(INT4, INT4), "int4", 32, 4),
        (compressed(INT4, FP8), None, None, None),
        (compressed(INT4, INT4 | {"group_size": 128}), None, None, None),
        (compressed(INT4 | {"group_size": None, "strategy": "channel"}), None, None, 4),
        (compressed(FP8), "fp8", None, 8),
        (compressed(FP8 | {"strategy": "block", "block_structure": [128, 128]}), "fp8_block", 128, 8),
        (compressed({"type": "float", "num_bits": 4, "group_size": 16}), "nvfp4", 16, 4),
        (compressed({"type": "float", "num_bits": 4, "group_size": 32}), None, None, 4),
        (compressed(), None, None, None),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": None}}}, None, None, None),
    ],
)
def test_what_a_config_says(config: dict[str, Any], form: str | None, group: int | None, bits: int | None) -> None:
    found = read(config)
    assert found is not None
    assert (found.format, found.group_size, found.bits) == (form, group, bits)


@pytest.mark.parametrize(
    ("config", "kernel"),
    [
        (compressed(INT4 | {"strategy": "group", "symmetric": True}), "compressed_int4"),  # Kimi K2.6
        (compressed(INT4, activations={"type": "float", "num_bits": 8}), None),  # llm-compressor's W4AFP8
        (compressed(FP8, activations={"type": "float", "num_bits": 8, "dynamic": True}), "fp8"),
        (compressed(FP8 | {"strategy": "block", "block_structure": [128, 128]}), "fp8_block"),
        (compressed({"type": "float", "num_bits": 4, "group_size": 16}), "nvfp4"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}, "int4_awq"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}, "gptq"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, None),
        ({"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}, "fp8_block"),  # DeepSeek
        ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8"),
        ({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}, "mxfp4"),  # gpt-oss
        (compressed(INT4, activations=FP8) | {"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "w4a8_awq"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, None),
    ],
)
def test_which_kernels_a_config_asks_for(config: dict[str, Any], kernel: str | None) -> None:
    found = read(config)
    assert found is not None
    assert found.kernel == kernel


@pytest.mark.parametrize(
    ("algorithm", "kernel"),
    [
        ("FP8", "fp8"),
        ("FP8_BLOCK_SCALES", "fp8_block"),
        ("NVFP4", "nvfp4"),
        ("W4A16_AWQ", "int4_awq"),
        ("W4A8_AWQ", "w4a8_awq"),
        ("MIXED_PRECISION", None),
    ],
)
def test_which_kernels_modelopts_file_asks_for(algorithm: str, kernel: str | None) -> None:
    found = read(None, {"quantization": {"quant_algo": algorithm, "group_size": 128 if "W4A" in algorithm else None}})
    assert found is not None
    assert found.kernel == kernel


@pytest.mark.parametrize(
    ("config", "file"),
    [
        (None, None),
        ({}, None),
        ({"quant_method": None}, {}),
        (None, {"quantization": {"quant_algo": None, "kv_cache_quant_algo": "FP8"}}),
        ({"quant_method": "modelopt", "kv_cache_scheme": {"num_bits": 8}}, {"quantization": {"kv_cache_quant_algo": "FP8"}}),
    ],
)
def test_plain_weights_are_not_quantized_whatever_their_cache_is(config: Any, file: Any) -> None:
    assert read(config, file) is None


@pytest.mark.parametrize("key", ["ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers"])
def test_the_list_of_modules_that_stayed_plain_has_many_names(key: str) -> None:
    found = read({"quant_method": "fp8", "ignore": None, key: ["lm_head", "re:.*gate$"]})
    assert found is not None
    assert found.excluded == ("lm_head", "re:.*gate$")


def test_the_file_alone_is_enough() -> None:
    file = {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "W4A16_AWQ", "group_size": 64, "exclude_modules": ["lm_head"]},
    }
    found = read(None, file)
    assert found == InputQuantization(
        name="W4A16_AWQ", format="int4", kernel="int4_awq", group_size=64, bits=4, excluded=("lm_head",)
    )


AWQ_FILE = {"quantization": {"quant_algo": "W4A16_AWQ", "group_size": 128, "kv_cache_quant_algo": "FP8"}}


@pytest.mark.parametrize(
    "config",
    [
        {"quant_method": "modelopt"},
        {"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"},
        {"quant_algo": "w4a16_awq", "group_size": 128},
    ],
)
def test_two_configs_that_agree_are_one(config: dict[str, Any]) -> None:
    found = read(config, AWQ_FILE)
    assert found is not None
    assert (found.name, found.format, found.group_size) == ("W4A16_AWQ", "int4", 128)


def test_two_names_of_one_thing_are_no_disagreement() -> None:
    blocks = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    found = read(blocks, {"quantization": {"quant_algo": "FP8_BLOCK_SCALES", "group_size": None}})
    assert found is not None
    assert found.kernel == "fp8_block"
    with pytest.raises(ModelError, match="disagree"):
        read(blocks, {"quantization": {"quant_algo": "FP8"}})


def test_capitals_are_no_disagreement() -> None:
    found = read({"quant_algo": "FP8"}, {"quantization": {"quant_algo": "fp8"}})
    assert found is not None
    assert found.format == "fp8"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"quant_method": "fp8"}, "'fp8'"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "'FP8'"),
        ({"quant_algo": "W4A16_AWQ", "group_size": 64}, "'W4A16_AWQ' with groups of 64"),
    ],
)
def test_two_configs_that_disagree_are_both_shown(config: dict[str, Any], told: str) -> None:
    """Case 6."""
    message = rf"disagree: config\.json says {told}, hf_quant_config\.json says 'W4A16_AWQ' with groups of 128"
    with pytest.raises(ModelError, match=message) as refused:
        read(config, AWQ_FILE)
    assert "delete the other" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"quant_method": 1}, "quantization_config: quant_method is 1"),
        ({"quant_method": "awq", "bits": "4"}, "bits is '4'"),
        ({"quant_method": "awq", "group_size": [128]}, r"group_size is \[128\]"),
        ({"quant_method": "fp8", "weight_block_size": 128}, "weight_block_size is 128"),
        ({"quant_method": "fp8", "ignore": "lm_head"}, "ignore is 'lm_head'"),
        ({"quant_method": "fp8", "ignore": [["lm_head"]]}, "ignore is"),
        ({"quant_method": "fp8", "ignore": ["re:(", "lm_head"]}, r"ignore has the pattern 're:\('"),
        ({"quant_method": "compressed-tensors", "config_groups": [1]}, "config_groups is"),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": 1}}, "config_groups: a is 1"),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": "int4"}}}, "a: weights is 'int4'"),
        (compressed(INT4 | {"num_bits": 4.0}), "num_bits is 4.0"),
    ],
)
def test_a_key_of_the_wrong_kind_is_named(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read(config)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ({"quantization": [1]}, r"quantization is \[1\]"),
        ({"quantization": {"quant_algo": ["FP8"]}}, r"quantization: quant_algo is \['FP8'\]"),
        ({"quantization": {"quant_algo": "W4A16_AWQ", "group_size": "128"}}, "quantization: group_size is '128'"),
        ({"quantization": {"quant_algo": "FP8", "exclude_modules": [1]}}, r"quantization: exclude_modules is \[1\]"),
    ],
)
def test_a_key_of_the_wrong_kind_is_named_in_the_file_too(file: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=rf"hf_quant_config\.json: {message}"):
        read(None, file)


KEYS = (
    "quant_method", "quant_algo", "bits", "w_bit", "group_size", "q_group_size", "weight_block_size", "config_groups",
    "weights", "type", "num_bits", "block_structure", "ignore", "exclude_modules", "quantization", "kv_cache_scheme",
)  # fmt: skip
NAMES = (
    "fp8",
    "awq",
    "gptq",
    "mxfp4",
    "modelopt",
    "NVFP4",
    "compressed-tensors",
    "int",
    "float",
    "re:(",
    "re:a",
    "",
    "[",
    "lm_head",
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 200), st.floats(), st.sampled_from(NAMES)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=5)


@settings(max_examples=150)
@given(
    config=st.none()
    | OBJECTS
    | st.builds(lambda method, rest: {**rest, "quant_method": method}, st.sampled_from(NAMES), OBJECTS),
    file=st.none() | OBJECTS | st.builds(lambda found: {"quantization": found}, OBJECTS),
)
def test_whatever_stands_in_two_quantization_configs_they_are_read_or_refused(config: Any, file: Any) -> None:
    try:
        found = shape_from_config(CONFIG | {"quantization_config": config}, stored_dtype=None, quant_config=file)
    except ModelError:
        return
    assert ModelShape.model_validate_json(found.model_dump_json()) == found


def test_a_plain_config_names_no_quantization() -> None:
    assert shape_of().quantization is None
