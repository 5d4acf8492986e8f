"""The tensors of a served model: one table that the config, the backend and the clients share.

Names and types are those of TensorRT-LLM's `llmapi` model, so clients of that model work here.
Additions of this package are marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["INPUTS", "OUTPUTS", "SAMPLING_PREFIX", "TensorSpec", "TritonType"]

TritonType = Literal["TYPE_STRING", "TYPE_BOOL", "TYPE_INT32", "TYPE_UINT64", "TYPE_FP32"]

SAMPLING_PREFIX = "sampling_param_"


@dataclass(frozen=True)
class TensorSpec:
    """One tensor of the model: shape ``[length]``, where −1 is any length."""

    name: str
    data_type: TritonType
    length: int
    what: str


INPUTS: tuple[TensorSpec, ...] = (
    TensorSpec("text_input", "TYPE_STRING", -1, "the prompt, one string; tokenized with special tokens"),
    TensorSpec("input_ids", "TYPE_INT32", -1, "addition: the prompt as token ids, taken as they are"),
    TensorSpec("streaming", "TYPE_BOOL", 1, "true: a response per piece of text; false (default): one response"),
    TensorSpec("sampling_param_max_tokens", "TYPE_INT32", 1, "most tokens to generate"),
    TensorSpec("sampling_param_temperature", "TYPE_FP32", 1, "0 is greedy"),
    TensorSpec("sampling_param_top_k", "TYPE_INT32", 1, "0 keeps every token"),
    TensorSpec("sampling_param_top_p", "TYPE_FP32", 1, "1 keeps every token"),
    TensorSpec("sampling_param_seed", "TYPE_UINT64", 1, "the same seed draws the same tokens"),
    TensorSpec("sampling_param_stop", "TYPE_STRING", -1, "strings that end the text before them"),
    TensorSpec("sampling_param_ignore_eos", "TYPE_BOOL", 1, "addition: go on past end-of-sequence tokens"),
)
"""Every input is optional to Triton; the backend wants exactly one of the two prompts."""

OUTPUTS: tuple[TensorSpec, ...] = (
    TensorSpec("text_output", "TYPE_STRING", -1, "new text; joined, the whole text"),
    TensorSpec("finish_reason", "TYPE_STRING", -1, "last response only: stop or length"),
    TensorSpec("stop_reason", "TYPE_STRING", -1, "last response only: the stop string or end token that ended it, or empty"),
    TensorSpec("prompt_tokens", "TYPE_INT32", 1, "addition: tokens of the prompt"),
    TensorSpec("completion_tokens", "TYPE_INT32", 1, "addition: tokens generated so far"),
)
