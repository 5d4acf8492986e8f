"""The tensors of a served model: one table that the config, the backend and the clients share.

Names and types are those of TensorRT-LLM's `llmapi` model, with the names of its C++ ensemble as aliases, so clients of
either work here. Additions of this package are marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["ANY", "INPUTS", "OUTPUTS", "SAMPLING_PREFIX", "TensorSpec", "TritonType"]

TritonType = Literal["TYPE_STRING", "TYPE_BOOL", "TYPE_INT32", "TYPE_UINT64", "TYPE_FP32"]

SAMPLING_PREFIX = "sampling_param_"
ANY = -1
"""The length of a tensor that holds any number of values."""

_STRING: TritonType = "TYPE_STRING"
_BOOL: TritonType = "TYPE_BOOL"
_INT: TritonType = "TYPE_INT32"
_FLOAT: TritonType = "TYPE_FP32"
_SEED: TritonType = "TYPE_UINT64"


@dataclass(frozen=True)
class TensorSpec:
    """One tensor of the model: shape ``[length]``, where −1 is any length.

    ``sets`` is what an input is about; inputs that set the same are names for one thing and exclude each other.
    """

    name: str
    data_type: TritonType
    length: int
    what: str
    sets: str = ""


def _own(name: str, kind: TritonType, length: int, what: str, *, sets: str = "") -> TensorSpec:
    return TensorSpec(name, kind, length, what, sets or name)


def _sampling(field: str, kind: TritonType, length: int, what: str) -> TensorSpec:
    return TensorSpec(SAMPLING_PREFIX + field, kind, length, what, field)


_OWN: tuple[TensorSpec, ...] = (
    _own("text_input", _STRING, ANY, "the prompt, one string; tokenized with special tokens"),
    _own("input_ids", _INT, ANY, "addition: the prompt as token ids, taken as they are"),
    _own("streaming", _BOOL, 1, "true: a response per piece of text; false (default): one response"),
    _own("stop", _BOOL, 1, "true: end all live requests with this request's id, instead of generating", sets="cancel"),
    _own("pages", _BOOL, 1, "addition: true: say in `page_map` who holds each KV page, instead of generating"),
    _sampling("max_tokens", _INT, 1, "most tokens to generate; 16 by default"),
    _sampling("temperature", _FLOAT, 1, "0 (default) is greedy"),
    _sampling("top_k", _INT, 1, "0 keeps every token"),
    _sampling("top_p", _FLOAT, 1, "1 keeps every token"),
    _sampling("seed", _SEED, 1, "the same seed draws the same tokens"),
    _sampling("stop", _STRING, ANY, "strings that end the text before them"),
    _sampling("presence_penalty", _FLOAT, 1, "taken once from the logits of tokens that the answer has"),
    _sampling("frequency_penalty", _FLOAT, 1, "taken as often as the answer has the token"),
    _sampling("min_p", _FLOAT, 1, "addition: drops tokens less likely than this part of the likeliest"),
    _sampling("repetition_penalty", _FLOAT, 1, "addition: above 1 makes tokens of prompt and answer less likely"),
    _sampling("min_tokens", _INT, 1, "addition: no end before so many tokens"),
    _sampling("stop_token_ids", _INT, ANY, "addition: tokens that end the answer, as end-of-sequence tokens do"),
    _sampling("ignore_eos", _BOOL, 1, "addition: go on past end-of-sequence tokens"),
    _sampling("logit_bias_ids", _INT, ANY, "addition: tokens whose logits are changed"),
    _sampling("logit_bias_values", _FLOAT, ANY, "addition: what is added to them, one for each"),
    _sampling("logprobs", _INT, 1, "addition: log-probability of each token, and of so many likeliest ones beside it"),
    _sampling("n", _INT, 1, "addition: answers to draw for the prompt"),
    _own("guided_decoding_guide_type", _STRING, 1, "what the text must be: `json` (any object), `json_schema` or `regex`"),
    _own("guided_decoding_guide", _STRING, 1, "the schema, as JSON, or the regular expression"),
    _own(
        "sampling_param_exclude_input_from_output",
        _BOOL,
        1,
        "true, which is the default, is all there is: an answer never repeats its prompt",
        sets="exclude_input",
    ),
    _own("return_finish_reason", _BOOL, 1, "false leaves `finish_reason` out; true is the default"),
    _own("return_stop_reason", _BOOL, 1, "false leaves `stop_reason` out; true is the default"),
    _own("return_cumulative_logprob", _BOOL, 1, "true adds `cumulative_logprob`"),
    _own("return_log_probs", _BOOL, 1, "true adds `cum_log_probs` and `output_log_probs`, as the ensemble names them"),
    _own("cache_salt", _STRING, 1, "addition: the prompt shares cached pages only with prompts of the same salt"),
    _own("priority", _INT, 1, "addition: smaller runs first; 0 by default"),
    _own("deadline_s", _FLOAT, 1, "addition: seconds after which the request is ended with an error"),
)


def _alias(name: str, of: str) -> TensorSpec:
    own = next(spec for spec in _OWN if spec.name == of)
    return TensorSpec(name, own.data_type, own.length, f"alias of `{of}`", own.sets)


_ALIASES: tuple[TensorSpec, ...] = (
    _alias("stream", "streaming"),
    _alias("stop_words", SAMPLING_PREFIX + "stop"),
    _alias("num_return_sequences", SAMPLING_PREFIX + "n"),
    _alias("exclude_input_in_output", SAMPLING_PREFIX + "exclude_input_from_output"),
    *(
        _alias(field, SAMPLING_PREFIX + field)
        for field in (
            "max_tokens",
            "min_tokens",
            "temperature",
            "top_k",
            "top_p",
            "seed",
            "repetition_penalty",
            "presence_penalty",
            "frequency_penalty",
        )
    ),
)

_REFUSED: tuple[TensorSpec, ...] = (
    _own("bad_words", _STRING, ANY, "refused: give `sampling_param_logit_bias_ids` and `…_values` instead"),
)

INPUTS: tuple[TensorSpec, ...] = (*_OWN, *_ALIASES, *_REFUSED)
"""Every input is optional to Triton; the backend wants exactly one of the two prompts, or ``stop`` or ``pages``."""

OUTPUTS: tuple[TensorSpec, ...] = (
    TensorSpec("text_output", _STRING, ANY, "new text; joined, the whole text"),
    TensorSpec("finish_reason", _STRING, ANY, "an answer's last response only: stop or length"),
    TensorSpec("stop_reason", _STRING, ANY, "an answer's last response only: the stop string or token that ended it, or empty"),
    TensorSpec("cumulative_logprob", _FLOAT, ANY, "when asked for: log-probability of all tokens so far"),
    TensorSpec("index", _INT, ANY, "addition: which of the request's answers, from 0 on"),
    TensorSpec("prompt_tokens", _INT, 1, "addition: tokens of the prompt"),
    TensorSpec("cached_tokens", _INT, ANY, "addition: tokens of the prompt that were not computed, for they were cached"),
    TensorSpec("completion_tokens", _INT, ANY, "addition: tokens of the answer so far"),
    TensorSpec("output_ids", _INT, ANY, "addition: new tokens of the answer; several answers' in the order of `index`"),
    TensorSpec("logprobs", _STRING, ANY, "addition, when asked for: JSON, one object for each of `output_ids`"),
    TensorSpec("cum_log_probs", _FLOAT, ANY, "when asked for: as `cumulative_logprob`"),
    TensorSpec("output_log_probs", _FLOAT, ANY, "when asked for: log-probability of each of `output_ids`"),
    TensorSpec("page_map", _STRING, 1, "addition, in the answer to `pages`: JSON, as the front's `/v1/pages` gives it"),
)
"""A response of a stream is about one answer. A one-shot response holds all of them: each tensor but ``prompt_tokens`` has
a value for each answer, in the order of ``index``."""
