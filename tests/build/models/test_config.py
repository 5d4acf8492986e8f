"""config.json as families write it: what is read, what is refused, and what is at least listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import FAMILIES, config_of
from stored import CONFIG, MOE, shape_of

from roundhouse.build.models.config import read_config, read_quant_config, shape_from_config
from roundhouse.build.models.config_reader import ConfigReader
from roundhouse.build.models.nested_config import language_model_config
from roundhouse.build.models.shape import ModelShape
from roundhouse.errors import ModelError


def test_an_explicit_head_size_wins_and_null_is_absent() -> None:
    assert shape_of(hidden_size=2560, num_attention_heads=32, num_key_value_heads=8, head_dim=128).head_dim == 128
    assert shape_of(head_dim=None).head_dim == 32


def test_heads_that_do_not_divide_are_refused_unless_their_size_is_explicit() -> None:
    with pytest.raises(ModelError, match="hidden_size 256 is not divisible by num_attention_heads 7"):
        shape_of(num_attention_heads=7)
    assert shape_of(num_attention_heads=7, num_key_value_heads=7, head_dim=40).head_dim == 40


def test_key_value_heads_default_to_heads() -> None:
    assert shape_of(num_key_value_heads=None).kv_heads == 8


@pytest.mark.parametrize(
    ("changes", "dtype", "source"),
    [
        ({"dtype": "bfloat16", "torch_dtype": None}, "bf16", "config.json dtype"),
        ({"dtype": "bfloat16", "torch_dtype": "float32"}, "bf16", "config.json dtype"),
        ({"dtype": None, "torch_dtype": "float16"}, "fp16", "config.json torch_dtype"),
        ({"dtype": "torch.float32"}, "float32", "config.json dtype"),
        ({"dtype": None}, "bf16", "safetensors headers"),
    ],
)
def test_the_dtype_that_was_used_is_said(changes: dict[str, Any], dtype: str, source: str) -> None:
    found = shape_of(**changes)
    assert (found.dtype, found.dtype_from) == (dtype, source)


def test_a_dtype_that_nobody_says_or_knows_is_refused() -> None:
    with pytest.raises(ModelError, match="safetensors headers names dtype 'nothing'"):
        shape_from_config({**CONFIG, "dtype": None}, stored_dtype=None)
    with pytest.raises(ModelError, match=r"config\.json dtype names dtype 'int8'"):
        shape_of(dtype="int8")


@pytest.mark.parametrize(
    ("rope", "kind"),
    [
        ({}, "default"),
        ({"rope_scaling": None, "rope_parameters": None}, "default"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "linear"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "llama3"),
        ({"rope_scaling": {"rope_type": "yarn", "type": "default"}}, "yarn"),
        ({"rope_scaling": {"type": "su", "long_factor": [1.0]}}, "longrope"),
        ({"rope_parameters": {"rope_theta": 1e6}}, "default"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "yarn"),
        ({"rope_parameters": {"rope_type": "default"}, "rope_scaling": {"type": "dynamic"}}, "dynamic"),
        ({"rope_parameters": {"rope_type": "yarn"}, "rope_scaling": {"type": "linear"}}, "linear"),
        ({"rope_parameters": {"sliding_attention": {"rope_type": "default"}, "full_attention": {"type": "linear"}}}, "linear"),
        ({"rope_parameters": {"sliding_attention": {"rope_theta": 1e4}, "full_attention": {"rope_theta": 1e6}}}, "default"),
    ],
)
def test_rotary_embeddings_have_many_names(rope: dict[str, Any], kind: str) -> None:
    assert shape_of(**rope).rope == kind


@pytest.mark.parametrize(
    "key",
    ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "max_position_embeddings"],
)
@pytest.mark.parametrize("missing", [True, False])
def test_a_missing_dimension_is_named(key: str, missing: bool) -> None:
    config = {name: value for name, value in CONFIG.items() if name != key} if missing else CONFIG | {key: None}
    with pytest.raises(ModelError, match=f"has no {key}"):
        shape_from_config(config, stored_dtype=None)


NO_NUMBERS = (0.5, 1.0, -1, "64", True, [8], {"a": 1}, 10**15)
NO_TEXT = (1, True, ["bfloat16"], {"a": 1})
NO_FLAG = (1, "true", [True], {})
NO_OBJECT = (1, "yarn", [1], True)
NO_NAMES = ("full_attention", [1, 2], [["a"], None], {"a": 1}, True, ["full_attention"] * 3)
LATENT = {"kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8, "q_lora_rank": 8}
SPARSE = LATENT | {"index_n_heads": 2, "index_head_dim": 8, "index_topk": 4}
WRONG: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *((key, (0, *NO_NUMBERS), {}) for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")),
    *((key, (0, *NO_NUMBERS), {}) for key in ("vocab_size", "max_position_embeddings", "num_key_value_heads", "head_dim")),
    *((key, NO_NUMBERS, {}) for key in ("num_nextn_predict_layers", "other_params", "sliding_window", "max_window_layers")),
    *((key, (0, *NO_NUMBERS), LATENT) for key in LATENT),
    *((key, (0, *NO_NUMBERS), SPARSE) for key in ("index_n_heads", "index_head_dim", "index_topk", "index_topk_freq")),
    ("index_skip_topk_offset", NO_NUMBERS, SPARSE),
    ("index_topk_pattern", (1, True, "FX", "F", ["full"], [{}, {}], {"a": 1}), SPARSE),
    ("indexer_types", (*NO_NAMES, ["full", "half"]), SPARSE),
    *((key, NO_NUMBERS, {}) for key in ("n_routed_experts", "num_experts", "num_local_experts")),
    *((key, (0, *NO_NUMBERS), MOE) for key in ("num_experts_per_tok", "moe_intermediate_size", "moe_layer_freq")),
    *((key, NO_NUMBERS, MOE) for key in ("n_shared_experts", "shared_expert_intermediate_size", "first_k_dense_replace")),
    ("decoder_sparse_step", (0, *NO_NUMBERS), MOE),
    ("mlp_only_layers", (1, "1", ["1"], [1.0], [True], {"a": 1}), MOE),
    ("mlp_layer_types", (*NO_NAMES, ["dense", "odd"]), MOE),
    ("layer_types", (*NO_NAMES, ["full_attention", "linear_attention"]), {}),
    ("sliding_window_pattern", (0, *NO_NUMBERS), {"sliding_window": 8}),
    *((key, NO_TEXT, {}) for key in ("dtype", "torch_dtype", "model_type")),
    ("architectures", ("LlamaForCausalLM", [1], {"a": 1}, True), {}),
    *((key, NO_FLAG, {}) for key in ("tie_word_embeddings", "attention_bias", "mlp_bias", "qkv_bias", "use_qk_norm")),
    ("use_sliding_window", NO_FLAG, {}),
    *((key, NO_OBJECT, {}) for key in ("rope_scaling", "rope_parameters", "quantization_config")),
    ("rope_type", (1, ["yarn"], {"a": 1}), {}),
]


@pytest.mark.parametrize(("key", "values", "beside"), WRONG, ids=[key for key, _, _ in WRONG])
def test_a_key_of_the_wrong_kind_is_named(key: str, values: tuple[Any, ...], beside: dict[str, Any]) -> None:
    for value in values:
        changes = {"rope_parameters": {"rope_type": value}} if key == "rope_type" else {key: value}
        with pytest.raises(ModelError, match=key) as refused:
            shape_of(**beside | changes)
        assert refused.value.hint
        assert len(str(refused.value)) < 400


def test_every_key_that_is_read_was_given_wrong_values(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    value = ConfigReader.value

    def recording(reader: ConfigReader, key: str) -> Any:
        if reader.where == "config.json":
            asked.add(key)
        return value(reader, key)

    monkeypatch.setattr(ConfigReader, "value", recording)
    for config in (MOE, SPARSE, {"sliding_window": 8}):
        shape_of(**config)
    assert asked <= {key for key, _, _ in WRONG}


KEYS = sorted({*(key for key, _, _ in WRONG), "text_config", "quantization_config", "rope_parameters"} - {"rope_type"})
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(0, 9),
        st.floats(),
        st.sampled_from(["", "F", "full", "full_attention", "sliding_attention", "yarn", "bfloat16", "fp8", "gemma3_text"]),
        st.text(max_size=3),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "rope_type", "type"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4), st.sampled_from([{}, MOE, SPARSE]))
def test_whatever_stands_in_a_config_it_is_read_or_refused(changes: dict[str, Any], beside: dict[str, Any]) -> None:
    try:
        found = shape_from_config(CONFIG | beside | changes, stored_dtype="bfloat16")
    except ModelError:
        return
    assert ModelShape.model_validate_json(found.model_dump_json()) == found


def test_a_number_of_layers_that_no_model_has_is_refused_before_it_is_counted_out() -> None:
    for key in ("num_hidden_layers", "num_nextn_predict_layers"):
        with pytest.raises(ModelError, match=f"{key} is 999999999"):
            shape_of(**{key: 999_999_999})


@pytest.mark.parametrize(
    "key",
    ["mamba_d_state", "ssm_state_size", "linear_num_key_heads", "linear_attn_config", "conv_L_cache", "lru_width",
     "hybrid_layer_pattern", "layers_block_type", "attn_layer_period", "compress_ratios", "layernorm_linear_attention_alpha"],
)  # fmt: skip
def test_layers_whose_cache_is_not_known_are_refused(key: str) -> None:
    with pytest.raises(ModelError, match=f"{key} tell of layers whose cache is not known"):
        shape_of(**{key: 16})
    assert shape_of(**{key: None}).unread == ()


def test_keys_that_nobody_reads_are_listed_unless_they_cannot_matter() -> None:
    unread = {"attention_chunk_size": 8, "mystery": [1], "_name": "x", "rms_norm_eps": 1e-5, "absent": None, "off": False}
    assert shape_of(**unread).unread == ("attention_chunk_size", "mystery")


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_that_transformers_writes_is_left_unread(family: str) -> None:
    written = json.loads(config_of(family).to_json_string())
    assert shape_from_config({**written, "architectures": ["X"]}, stored_dtype="bfloat16").unread == ()


@pytest.mark.parametrize(
    "family",
    ["cohere", "cohere2", "ernie4_5", "ernie4_5_moe", "falcon", "gemma", "gemma2", "gemma3_text", "minicpm3", "smollm3",
     "starcoder2", "youtu", "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gpt_oss", "glm4_moe", "phi3"],
)  # fmt: skip
def test_a_family_that_does_not_say_ties_as_in_transformers(family: str) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    assert shape_of(model_type=family).tied_embeddings == CONFIG_MAPPING[family].tie_word_embeddings
    assert not shape_of(model_type=family, tie_word_embeddings=False).tied_embeddings


QUANTIZED = {"quant_method": "fp8"}


@pytest.mark.parametrize("levels", ["outer", "inner", "both"])
def test_a_language_model_nested_beside_a_vision_tower_is_read(levels: str) -> None:
    inner = {
        "model_type": "kimi_k2",
        **{key: value for key, value in CONFIG.items() if key not in ("architectures", "model_type")},
    }
    outer = {"architectures": ["KimiK25ForConditionalGeneration"], "model_type": "kimi_k25", "vision_config": {"a": 1}}
    inner |= {} if levels == "outer" else {"quantization_config": QUANTIZED}
    outer |= {} if levels == "inner" else {"quantization_config": QUANTIZED}
    found = shape_from_config(outer | {"text_config": inner}, stored_dtype="bfloat16")
    assert (found.architecture, found.model_type) == ("KimiK25ForConditionalGeneration", "kimi_k25")
    assert (found.hidden, found.layers) == (256, 2)
    assert found.quantization is not None
    assert found.quantization.name == "fp8"


def test_a_tower_whose_size_nobody_says_is_listed() -> None:
    nested = {"model_type": "kimi_k25", "text_config": CONFIG, "vision_config": {"hidden_size": 8}}
    assert shape_from_config(nested, stored_dtype=None).unread == ("vision_config",)
    assert shape_from_config(nested | {"other_params": 7}, stored_dtype=None).unread == ()
    assert shape_from_config(nested | {"vision_config": None}, stored_dtype=None).unread == ()


def test_nested_quantization_configs_that_disagree_are_refused() -> None:
    inner = CONFIG | {"quantization_config": {"quant_method": "awq"}}
    with pytest.raises(ModelError, match="two quantization_config that disagree"):
        shape_from_config({"text_config": inner, "quantization_config": QUANTIZED}, stored_dtype="bfloat16")


def test_what_the_outer_level_says_alone_holds_for_the_inner_one() -> None:
    inner = {key: value for key, value in CONFIG.items() if key != "dtype"}
    found = shape_from_config(
        {"text_config": inner, "torch_dtype": "float16", "tie_word_embeddings": True, "other_params": 7}, stored_dtype=None
    )
    assert (found.dtype, found.tied_embeddings, found.other_params) == ("fp16", True, 7)


@pytest.mark.parametrize("value", ["x", [CONFIG], 1])
def test_a_nested_model_of_the_wrong_kind_is_named(value: object) -> None:
    with pytest.raises(ModelError, match="text_config is"):
        shape_from_config({"text_config": value}, stored_dtype=None)


def test_a_nested_model_has_the_habits_of_its_own_family() -> None:
    from transformers import AutoConfig

    nested = {"hidden_size": 2560, "intermediate_size": 10_240, "num_hidden_layers": 34, "sliding_window": 1024}
    config = {"model_type": "gemma3", "text_config": {**nested, "model_type": "gemma3_text"}, "dtype": "bfloat16"}
    theirs = AutoConfig.for_model("gemma3_text", **nested)
    found = shape_from_config(config, stored_dtype=None)
    assert (found.heads, found.kv_heads, found.head_dim) == (
        theirs.num_attention_heads,
        theirs.num_key_value_heads,
        theirs.head_dim,
    )
    assert (found.vocab, found.max_positions) == (theirs.vocab_size, theirs.max_position_embeddings)
    assert found.tied_embeddings
    assert (found.sliding_window, len(found.sliding_layers)) == (1024, 29)
    llava = {"model_type": "llava", "text_config": {**CONFIG, "model_type": "qwen2", "sliding_window": 64}}
    assert language_model_config(llava, "config.json")[1] == "qwen2"
    assert shape_from_config(llava, stored_dtype=None).sliding_window is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[1]", "holds a list"),
        ("\ufeff{}", "not valid JSON"),
        (f'{{"a": {"9" * 5000}}}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
    ids=["cut", "list", "mark", "digits", "deep"],
)
def test_a_broken_config_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelError, match=message):
        read_config(tmp_path)


def test_a_config_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ModelError, match="not valid JSON"):
        read_config(tmp_path)


def test_a_folder_without_config_is_refused_and_one_without_quantization_is_not(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        read_config(tmp_path)
    assert read_quant_config(tmp_path) is None
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {}}')
    assert read_quant_config(tmp_path) == {"quantization": {}}
