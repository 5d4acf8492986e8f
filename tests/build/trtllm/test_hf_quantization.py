from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roundhouse.build.trtllm.hf_quantization import ALGORITHMS, read_hf_quantization
from roundhouse.build.trtllm.upstream import ValuesRecord, upstream
from roundhouse.errors import ModelError


def folder_with(folder: Path, **files: Any) -> Path:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_every_algorithm_is_one_of_upstreams() -> None:
    record = upstream().records["tensorrt_llm.quantization.mode.QuantAlgo"]
    assert isinstance(record, ValuesRecord)
    assert set(ALGORITHMS.values()) - {None} <= set(record.values)


def test_the_file_counts_before_the_config(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path,
        config={"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}},
        hf_quant_config={"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}},
    )
    found = read_hf_quantization(folder)
    assert (found.where, found.algorithm, found.group_size, found.excluded) == (
        "hf_quant_config.json",
        "NVFP4",
        16,
        ("lm_head",),
    )


@pytest.mark.parametrize(
    ("given", "algorithm"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "FP8_BLOCK_SCALES"),
        ({"quant_method": "mxfp4"}, "W4A16_MXFP4"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8}}}},
            "FP8_PER_CHANNEL_PER_TOKEN",
        ),
    ],
)
def test_three_forms_are_read_from_the_config(tmp_path: Path, given: dict[str, Any], algorithm: str) -> None:
    found = read_hf_quantization(folder_with(tmp_path, config={"quantization_config": given}))
    assert (found.algorithm, found.problems) == (algorithm, ())


@pytest.mark.parametrize(
    "given",
    [
        {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4}}}},
        {"quant_method": "gptq", "bits": 4},
        {"quant_method": "modelopt", "quant_algo": "FP8"},
    ],
)
def test_what_upstream_would_take_for_plain_weights_is_said(tmp_path: Path, given: dict[str, Any]) -> None:
    (said,) = read_hf_quantization(folder_with(tmp_path, config={"quantization_config": given})).problems
    assert f"says {given['quant_method']}" in said


def test_plain_weights_have_no_algorithm(tmp_path: Path) -> None:
    found = read_hf_quantization(folder_with(tmp_path, config={"architectures": ["LlamaForCausalLM"]}))
    assert (found.algorithm, found.kv_cache, found.problems) == (None, None, ())


def test_mixed_precision_needs_its_layers_and_a_word_on_the_cache(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, hf_quant_config={"quantization": {"quant_algo": "MIXED_PRECISION"}})
    assert len(read_hf_quantization(folder).problems) == 2
    layers = {"model.layers.0.mlp.experts": {"quant_algo": "W4A8_AWQ", "group_size": 128}}
    folder_with(folder, quant_cfg={"quantized_layers": layers, "kv_cache_quant_algo": None})
    assert read_hf_quantization(folder).problems == ()


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "hf_quant_config.json").write_text(text)
    with pytest.raises(ModelError, match=r"hf_quant_config\.json"):
        read_hf_quantization(tmp_path)
