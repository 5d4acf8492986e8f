"""``target_options`` against the record: unknown keys name the nearest, and what the recipe decides is not given twice."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from roundhouse.build.recipe import Recipe, Target
from roundhouse.build.trtllm.options import _DECIDED, _OURS, _RECORDS, _STEPS, check_target_options, nested_options
from roundhouse.build.trtllm.upstream import check_fields, fields_of


def complaints(target: str, options: dict[str, Any]) -> list[str]:
    return [problem.message for problem in check_target_options(target, options)]


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("torch", {}),
        ("tensorrt", {"opt_batch_size": 8, "plugin_config.gemm_plugin": "auto", "profiling_verbosity": "detailed"}),
        ("tensorrt", {"plugin_config": {"gemm_plugin": None, "use_paged_context_fmha": False}, "input_timing_cache": None}),
        ("trtllm-pytorch", {"moe_config": {"backend": "CUTLASS"}, "enable_chunked_prefill": True}),
        ("trtllm-pytorch", {"cuda_graph_config": None, "batch_wait_timeout_ms": 0}),
        ("trtllm-pytorch", {"cuda_graph_config": {"batch_sizes": [4, 1]}}),
        ("trtllm-pytorch", {"kv_cache_config.enable_block_reuse": False, "batch_wait_timeout_ms": 5}),
    ],
)
def test_what_upstream_takes_is_taken(target: str, options: dict[str, Any]) -> None:
    assert complaints(target, options) == []


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("torch", {"opt": 1}, "the torch target has no options (opt)"),
        ("tensorrt", {"opt_batch_sise": 8}, "the nearest that it knows is opt_batch_size"),
        ("tensorrt", {"gemm_plugin": "auto"}, "has no gemm_plugin; plugin_config.gemm_plugin is known"),
        ("trtllm-pytorch", {"host_cache_size": 1}, "has no host_cache_size; kv_cache_config.host_cache_size is known"),
        ("tensorrt", {"plugin_config.gem_plugin": "auto"}, "target_options.plugin_config.gem_plugin: "),
        ("tensorrt", {"plugin_config": {"gemm_plugin": "fp7"}}, "'fp7' is none of "),
        ("tensorrt", {"opt_batch_size": "8"}, "target_options.opt_batch_size: '8' is no int"),
        ("tensorrt", {"opt_batch_size": True}, "True is no int"),
        ("tensorrt", {"opt_batch_size": -4}, "target_options.opt_batch_size: -4 is less than 1"),
        ("tensorrt", {"opt_num_tokens": 0}, "target_options.opt_num_tokens: 0 is less than 1"),
        ("tensorrt", {"plugin_config": None}, "target_options.plugin_config: None is no PluginConfig; give a mapping"),
        ("tensorrt", {"plugin_config": "x"}, "target_options.plugin_config: 'x' is no PluginConfig; give a mapping"),
        ("trtllm-pytorch", {"kv_cache_config": 5}, "target_options.kv_cache_config: 5 is no KvCacheConfig"),
        ("trtllm-pytorch", {"kv_cache_config": None}, "target_options.kv_cache_config: "),
        ("trtllm-pytorch", {"cuda_graph_config": 7}, "target_options.cuda_graph_config: 7 is no CudaGraphConfig or None"),
        ("trtllm-pytorch", {"cuda_graph_config.max_batch_size": -1}, "cuda_graph_config.max_batch_size: -1 is less than 0"),
        ("trtllm-pytorch", {"cuda_graph_config.batch_sizes": [1, "2"]}, "batch_sizes: [1, '2'] is no list[int] or None"),
        ("trtllm-pytorch", {"cuda_graph_config.batch_sizes": 4}, "batch_sizes: 4 is no list[int] or None"),
        ("trtllm-pytorch", {"stream_interval": [4]}, "stream_interval: [4] is no int"),
        ("trtllm-pytorch", {"batch_wait_timeout_ms": -0.5}, "batch_wait_timeout_ms: -0.5 is less than 0"),
        *(
            ("tensorrt", {key: value}, f"target_options.{key}: roundhouse's own steps feed the engine")
            for key, value in (
                ("force_num_profiles", 2),
                ("enable_debug_output", True),
                ("plugin_config.multiple_profiles", True),
                ("plugin_config.user_buffer", True),
                ("plugin_config.gemm_allreduce_plugin", "bfloat16"),
            )
        ),
        ("tensorrt", {"output_timing_cache": "mine"}, "target_options.output_timing_cache: roundhouse decides it"),
        ("tensorrt", {"plugin_config": {"use_paged_context_fmha": 1}}, "plugin_config.use_paged_context_fmha: 1 is no bool"),
        ("tensorrt", {"max_input_len": 9}, "target_options.max_input_len: the recipe's max_seq_len decides it"),
        ("tensorrt", {"plugin_config": {"tokens_per_block": 64}}, "the recipe's page_tokens decides it"),
        ("tensorrt", {"plugin_config.dtype": "float16"}, "roundhouse decides it"),
        ("tensorrt", {"max_beam_width": 4}, "roundhouse's own steps feed the engine"),
        ("tensorrt", {"a": 1, "a.b": 2}, "target_options: a.b is given twice"),
        ("trtllm-pytorch", {"kv_cache_config.dtype": "fp8"}, "the recipe's kv_cache decides it"),
        ("trtllm-pytorch", {"kv_cache_free_gpu_memory_fracton": 0.5}, "has no kv_cache_free_gpu_memory_fracton"),
    ],
)
def test_what_it_does_not_take_is_named(target: str, options: dict[str, Any], words: str) -> None:
    found = complaints(target, options)
    assert len(found) == 1
    assert words in found[0]


def test_keys_with_dots_are_keys_of_the_mapping_before_the_dot() -> None:
    assert nested_options({"a.b.c": 1, "a": {"b": {"d": 2}}, "e": {}}) == {"a": {"b": {"c": 1, "d": 2}}, "e": {}}
    with pytest.raises(ValueError, match=r"a\.b is given twice"):
        nested_options({"a.b": 1, "a": {"b": 2}})


@pytest.mark.parametrize("target", sorted(_DECIDED))
def test_what_is_decided_elsewhere_is_known_upstream_and_decided_by_a_key_of_recipes(target: str) -> None:
    given = nested_options(dict.fromkeys(_DECIDED[target]))
    unknown = [text for text in check_fields(_RECORDS[target], given) if " has no " in text]
    assert unknown == []
    assert {by for by in _DECIDED[target].values() if by not in (_OURS, _STEPS)} <= set(Recipe.model_fields)
    assert target in get_args(Target)
    # So that null for the whole class takes nothing away that is decided elsewhere.
    for outer in {name.partition(".")[0] for name in _DECIDED[target] if "." in name}:
        assert "None" not in fields_of(_RECORDS[target])[outer].type.split(" | ")
