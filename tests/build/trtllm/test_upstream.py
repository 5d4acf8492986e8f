from __future__ import annotations

import json

import pytest

from roundhouse.build.trtllm.upstream import (
    ClassRecord,
    FieldsRecord,
    check_fields,
    fields_of,
    parameters_of,
    read_upstream,
    upstream,
)

BUILD = "tensorrt_llm.builder.BuildConfig"
ARGUMENTS = "tensorrt_llm.llmapi.llm_args.TorchLlmArgs"
CHECKPOINT = "tensorrt_llm.models.modeling_utils.PretrainedConfig"


def test_the_shipped_record_is_of_the_release_we_build_for() -> None:
    assert upstream().version == "1.2.1"
    assert all(record.source.path for record in upstream().records.values())


def test_what_is_not_exact_says_what_was_read_instead() -> None:
    loose = {name: record.source for name, record in upstream().records.items() if not record.source.exact}
    assert [name for name, source in loose.items() if not source.note] == []
    assert [name for name, record in upstream().records.items() if record.source.exact and record.source.commit is None] == []


def test_fields_have_types_and_defaults() -> None:
    fields = fields_of(BUILD)
    assert (fields["max_input_len"].type, fields["max_input_len"].default) == ("int", 1024)
    assert fields["plugin_config"].factory == "PluginConfig"
    assert fields_of(ARGUMENTS)["model"].required
    assert not fields_of(ARGUMENTS)["max_seq_len"].required


def test_parameters_are_found_for_functions_and_methods() -> None:
    assert [each.name for each in parameters_of("tensorrt_llm.builder.build")] == ["model", "build_config"]
    (batch,) = parameters_of("tensorrt_llm._torch.pyexecutor.resource_manager.KVCacheManager.prepare_resources")
    assert batch.name == "scheduled_batch"
    assert batch.required


def test_what_is_not_recorded_is_a_key_error_that_names_the_nearest() -> None:
    with pytest.raises(KeyError, match=r"the nearest is tensorrt_llm\.builder\.BuildConfig"):
        fields_of("tensorrt_llm.builder.BuildConfigs")
    with pytest.raises(KeyError, match="not by its fields"):
        fields_of("tensorrt_llm.builder.build")
    with pytest.raises(KeyError, match="without parameters"):
        parameters_of(BUILD)


def test_known_keys_are_not_complained_about() -> None:
    emitted = {"max_batch_size": 8, "kv_cache_type": "paged", "plugin_config": {"gemm_plugin": "auto", "tokens_per_block": 32}}
    assert check_fields(BUILD, emitted) == []


def test_an_unknown_key_is_named_with_the_nearest_known_one() -> None:
    (said,) = check_fields(BUILD, {"max_inputlen": 512})
    unknown = f"max_inputlen: {BUILD} of TensorRT-LLM 1.2.1 has no max_inputlen"
    assert said == f"{unknown}; the nearest that it knows is max_input_len"
    (said,) = check_fields(BUILD, {"zzzz": 1})
    assert said.endswith("has no zzzz")


def test_mappings_inside_are_checked_with_their_own_record() -> None:
    said = check_fields(ARGUMENTS, {"kv_cache_config": {"max_tokns": 1}, "moe_config": {"backend": "AUTO"}})
    assert [line.partition(":")[0] for line in said] == ["kv_cache_config.max_tokns", "moe_config.backend"]
    assert "'AUTO' is none of 'CUTLASS'" in said[1]


def test_a_record_that_takes_any_key_complains_only_about_misspelt_ones() -> None:
    assert check_fields(CHECKPOINT, {"hidden_act": "silu", "rotary_base": 10000.0}) == []
    (said,) = check_fields(CHECKPOINT, {"hiden_act": "silu"})
    assert "nearest that it knows is hidden_act" in said


def test_options_are_known_under_every_name() -> None:
    serve = "tensorrt_llm.commands.serve.serve"
    assert check_fields(serve, {"tp_size": 2, "tensor_parallel_size": 2, "config": "x.yaml"}) == []
    (said,) = check_fields(serve, {"backend": "torch"})
    assert said.startswith("backend: 'torch' is none of 'pytorch'")


def test_a_record_of_a_class_has_its_methods_and_no_keys() -> None:
    name = "tensorrt_llm.runtime.session.Session"
    record = upstream().records[name]
    assert isinstance(record, ClassRecord)
    assert {"set_shapes", "infer_shapes", "run", "from_serialized_engine"} <= record.methods.keys()
    with pytest.raises(KeyError):
        check_fields(name, {})


def test_nested_classes_that_we_emit_are_recorded() -> None:
    kinds = ("KvCache", "CudaGraph", "Moe", "Scheduler", "CacheTransceiver", "KvCacheConnector", "AttentionDp")
    for name in (f"{kind}Config" for kind in kinds):
        assert isinstance(upstream().records[f"tensorrt_llm.llmapi.llm_args.{name}"], FieldsRecord)


def test_engine_tensors_checkpoints_and_triton_models_are_there() -> None:
    whole = upstream()
    assert whole.engine_inputs.inputs["host_kv_cache_block_offsets"].place == "host"
    assert whole.engine_inputs.inputs["kv_cache_block_offsets"].dims == ("pools", "batch*beam", 2, "blocks")
    assert set(whole.triton) == {"llmapi", "tensorrtllm"}
    assert not whole.triton["llmapi"].inputs["text_input"].optional
    assert whole.quant.algorithms["W4A16_AWQ"]["weight"].dims == ("out/2", "in")
    assert {"FP8", "W4A16_AWQ", "W4A8_AWQ", "NVFP4"} <= set(whole.quant.algorithms)
    assert set(whole.hf_checkpoint.w4a8_mode_of.values()) == set(whole.hf_checkpoint.w4a8_experts)
    assert {"FP8", "W4A16_AWQ", "W4A8_AWQ", "NVFP4", "FP8_BLOCK_SCALES"} <= set(whole.hf_checkpoint.linears)


def test_unknown_keys_and_later_formats_are_refused() -> None:
    value = json.loads(upstream().model_dump_json())
    for wrong in ({**value, "format": 2}, {**value, "more": 1}):
        with pytest.raises(ValueError, match=r"format|more"):
            read_upstream(json.dumps(wrong))
