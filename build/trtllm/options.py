"""A recipe's ``target_options``, checked against what TensorRT-LLM takes before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from ..planner.problems import Problem
from .upstream import UpstreamField, check_fields, fields_of, record_called

__all__ = ["check_target_options", "nested_options"]

_RECORDS = {
    "tensorrt": "tensorrt_llm.builder.BuildConfig",
    "trtllm-pytorch": "tensorrt_llm.llmapi.llm_args.TorchLlmArgs",
}
"""What a target's options are the keys of; those of a class inside of it are written with a dot."""

_OURS = "roundhouse decides it"
_STEPS = "roundhouse's own steps feed the engine and need it as it is"
_DECIDED: dict[str, dict[str, str]] = {
    "tensorrt": {
        "max_batch_size": "max_batch_size",
        "max_input_len": "max_seq_len",
        "max_seq_len": "max_seq_len",
        "max_num_tokens": "max_num_tokens",
        "plugin_config.tokens_per_block": "page_tokens",
        **dict.fromkeys(
            (
                "kv_cache_type",
                "plugin_config.paged_kv_cache",
                "plugin_config.dtype",
                "dry_run",
                "output_timing_cache",
                "visualize_network",
            ),
            _OURS,
        ),
        **dict.fromkeys(
            (
                "max_beam_width",
                "gather_context_logits",
                "gather_generation_logits",
                "max_draft_len",
                "speculative_decoding_mode",
                "max_prompt_embedding_table_size",
                "lora_config",
                "use_mrope",
                "weight_streaming",
                "use_strip_plan",
                "force_num_profiles",
                "enable_debug_output",
                "plugin_config.gpt_attention_plugin",
                "plugin_config.lora_plugin",
                "plugin_config.remove_input_padding",
                "plugin_config.streamingllm",
                "plugin_config.manage_weights",
                "plugin_config.multiple_profiles",
                "plugin_config.user_buffer",
                "plugin_config.gemm_allreduce_plugin",
            ),
            _STEPS,
        ),
    },
    "trtllm-pytorch": {
        "max_batch_size": "max_batch_size",
        "max_input_len": "max_seq_len",
        "max_seq_len": "max_seq_len",
        "max_num_tokens": "max_num_tokens",
        "tensor_parallel_size": "tensor_parallel",
        "pipeline_parallel_size": "pipeline_parallel",
        "moe_expert_parallel_size": "expert_parallel",
        "moe_tensor_parallel_size": "expert_parallel",
        "enable_attention_dp": "attention_data_parallel",
        "kv_cache_config.tokens_per_block": "page_tokens",
        "kv_cache_config.dtype": "kv_cache",
        "kv_cache_config.free_gpu_memory_fraction": "memory_fraction",
        "kv_cache_config.max_gpu_total_bytes": "kv_cache_bytes",
        "kv_cache_config.max_tokens": "kv_cache_tokens",
        **dict.fromkeys(("model", "tokenizer", "dtype", "backend", "checkpoint_format"), _OURS),
    },
}
"""Options that are no one's to give: the key of the recipe that decides each, or why none does."""

_AT_LEAST_ONE = ("opt_batch_size", "opt_num_tokens")
_NUMBERS = "list[int]"
_TYPES: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float), "bool": bool, "str": str, "None": type(None)}


def check_target_options(target: str, options: Mapping[str, JsonValue]) -> list[Problem]:
    """Everything about a recipe's ``target_options`` that its target would not take.

    Args:
        target: of the recipe.
        options: as the recipe gives them: ``plugin_config.gemm_plugin: auto``, or one mapping inside the other.
    """
    if target not in _RECORDS:
        text = f"the {target} target has no options ({', '.join(options)})" if options else ""
        return [_problem("target_options", text)] if text else []
    try:
        nested = nested_options(options)
    except ValueError as error:
        return [_problem("target_options", f"target_options: {error}")]
    complaints = check_fields(_RECORDS[target], nested)
    complaints += _wrong_types(_RECORDS[target], nested, "")
    complaints += _decided(_DECIDED[target], nested, "")
    return [_problem(f"target_options.{text.partition(':')[0]}", f"target_options.{text}") for text in complaints]


def nested_options(options: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Options with a mapping for each class, as upstream takes them: a key ``a.b`` is the key ``b`` of the mapping ``a``.

    Raises:
        ValueError: one key is given twice, or is both a value and a mapping.
    """
    nested: dict[str, Any] = {}
    for path, value in _leaves(options):
        place: Any = nested
        for part in path[:-1]:
            place = place.setdefault(part, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict) or path[-1] in place:
            raise ValueError(f"{'.'.join(path)} is given twice")
        place[path[-1]] = value
    return nested


def _leaves(options: Mapping[str, JsonValue]) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    """Every value that is no mapping, or an empty one, with the keys that lead to it."""
    for key, value in options.items():
        path = tuple(key.split("."))
        if isinstance(value, Mapping) and value:
            yield from (((*path, *inner), leaf) for inner, leaf in _leaves(value))
        else:
            yield path, value


def _problem(where: str, message: str) -> Problem:
    return Problem(code="target_options", where=where, message=message)


def _decided(decided: Mapping[str, str], options: Mapping[str, Any], inside: str) -> Iterator[str]:
    for key, value in options.items():
        path = f"{inside}{key}"
        if path in decided:
            by = decided[path]
            yield f"{path}: {by}" if by in (_OURS, _STEPS) else f"{path}: the recipe's {by} decides it"
        elif isinstance(value, dict):
            yield from _decided(decided, value, f"{path}.")


def _wrong_types(record: str, options: Mapping[str, Any], inside: str) -> Iterator[str]:
    """Values that upstream does not take; choices are checked with the names, and classes that are not recorded are not."""
    known = fields_of(record)
    for key, value in options.items():
        spec = known.get(key)
        if spec is None:
            continue
        path = f"{inside}{key}"
        nested = record_called(spec.type)
        if isinstance(value, dict) and nested is not None:
            yield from _wrong_types(nested, value, f"{path}.")
        elif nested is not None:
            if value is not None or "None" not in spec.type.split(" | "):
                yield f"{path}: {value!r} is no {spec.type.replace(' | ', ' or ')}; give a mapping of its keys"
        elif not _fits(spec, value):
            yield f"{path}: {value!r} is no {spec.type.replace(' | ', ' or ')}"
        elif (least := _least(key, spec, value)) is not None and value < least:
            yield f"{path}: {value!r} is less than {least}"


def _fits(spec: UpstreamField, value: Any) -> bool:
    names = spec.type.split(" | ")
    if spec.choices or not all(name in _TYPES or name == _NUMBERS for name in names):
        return True
    if isinstance(value, list):
        return _NUMBERS in names and all(isinstance(one, int) and not isinstance(one, bool) for one in value)
    if isinstance(value, bool):  # which Python takes for a whole number
        return "bool" in names
    return any(isinstance(value, _TYPES[name]) for name in names if name != _NUMBERS)


def _least(key: str, spec: UpstreamField, value: Any) -> int | None:
    """The least that a number may be, or None of what is no number. No recorded option means anything by a negative one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or spec.choices:
        return None
    return 1 if key in _AT_LEAST_ONE else 0
