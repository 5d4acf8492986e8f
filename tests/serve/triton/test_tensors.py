from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from roundhouse.errors import RequestError
from roundhouse.serve.engine.request import Guide, SamplingParams
from roundhouse.serve.triton.contract import ANY, INPUTS
from roundhouse.serve.triton.tensors import ParsedRequest, Returns, parse_parameters, parse_request

PROMPT = {"text_input": np.array([b"hi"], dtype=np.object_)}


def strings(*values: str) -> Any:
    return np.array([value.encode() for value in values], dtype=np.object_)


def refusal(tensors: dict[str, Any], parameters: dict[str, object] | None = None) -> str:
    with pytest.raises(RequestError) as caught:
        parse_request(tensors, parameters or {})
    assert caught.value.code == "invalid_request"
    return caught.value.message


EVERY_TENSOR: dict[str, Any] = {
    "text_input": strings("grüß"),
    "streaming": np.array([True]),
    "sampling_param_max_tokens": np.array([7], dtype=np.int32),
    "sampling_param_min_tokens": np.array([2], dtype=np.int32),
    "sampling_param_temperature": np.array([0.5], dtype=np.float32),
    "sampling_param_top_k": np.array([3], dtype=np.int32),
    "sampling_param_top_p": np.array([0.25], dtype=np.float32),
    "sampling_param_min_p": np.array([0.125], dtype=np.float32),
    "sampling_param_repetition_penalty": np.array([1.5], dtype=np.float32),
    "sampling_param_presence_penalty": np.array([-1.0], dtype=np.float32),
    "sampling_param_frequency_penalty": np.array([2.0], dtype=np.float32),
    "sampling_param_logit_bias_ids": np.array([5, 9], dtype=np.int32),
    "sampling_param_logit_bias_values": np.array([-100.0, 1.5], dtype=np.float32),
    "sampling_param_seed": np.array([2**64 - 1], dtype=np.uint64),
    "sampling_param_stop": strings("a", "bc"),
    "sampling_param_stop_token_ids": np.array([11, 12], dtype=np.int32),
    "sampling_param_ignore_eos": np.array([True]),
    "sampling_param_logprobs": np.array([4], dtype=np.int32),
    "sampling_param_n": np.array([2], dtype=np.int32),
    "sampling_param_exclude_input_from_output": np.array([True]),
    "guided_decoding_guide_type": strings("regex"),
    "guided_decoding_guide": strings("[ab]+"),
    "return_finish_reason": np.array([False]),
    "return_stop_reason": np.array([False]),
    "return_cumulative_logprob": np.array([True]),
    "return_log_probs": np.array([True]),
    "cache_salt": strings("tenant"),
    "priority": np.array([-3], dtype=np.int32),
    "deadline_s": np.array([2.5], dtype=np.float32),
}


def test_whoever_asks_about_pages_asks_for_nothing_else() -> None:
    asked = np.array([True])
    assert parse_request({"pages": asked}, {}) == parse_request(PROMPT, {"pages": True}) == ParsedRequest(pages=True)
    assert parse_request({"pages": asked, "stop": asked}, {}) == ParsedRequest(cancel=True)
    assert not parse_request(PROMPT, {"pages": False}).pages


def test_every_tensor_of_the_contract_is_read() -> None:
    own = {spec.name for spec in INPUTS if not spec.what.startswith(("alias", "refused"))}
    assert set(EVERY_TENSOR) | {"input_ids", "stop", "pages"} == own
    assert parse_request(EVERY_TENSOR, {}) == ParsedRequest(
        prompt="grüß",
        prompt_ids=None,
        streaming=True,
        sampling=SamplingParams(
            max_tokens=7,
            min_tokens=2,
            temperature=0.5,
            top_k=3,
            top_p=0.25,
            min_p=0.125,
            repetition_penalty=1.5,
            presence_penalty=-1.0,
            frequency_penalty=2.0,
            logit_bias={5: -100.0, 9: 1.5},
            seed=2**64 - 1,
            stop=("a", "bc"),
            stop_token_ids=(11, 12),
            ignore_eos=True,
            logprobs=4,
            n=2,
            guide=Guide(kind="regex", text="[ab]+"),
        ),
        cache_salt="tenant",
        priority=-3,
        deadline_s=2.5,
        returns=Returns(finish_reason=False, stop_reason=False, logprobs=True, cumulative_logprob=True, log_probs=True),
    )


def test_every_field_of_the_sampling_parameters_has_a_tensor() -> None:
    parsed = parse_request(EVERY_TENSOR, {}).sampling
    default = SamplingParams()
    same = [name for name in SamplingParams.__struct_fields__ if getattr(parsed, name) == getattr(default, name)]
    assert same == []


def test_token_ids_are_taken_as_they_are() -> None:
    parsed = parse_request({"input_ids": np.array([1, 2, 3], dtype=np.int32)}, {})
    assert (parsed.prompt, parsed.prompt_ids, parsed.streaming) == (None, [1, 2, 3], False)
    assert parsed.sampling == SamplingParams()
    assert parsed.returns == Returns()


@pytest.mark.parametrize("alias", [spec for spec in INPUTS if spec.what.startswith("alias")], ids=lambda spec: spec.name)
def test_an_alias_says_the_same_as_what_it_stands_for(alias: Any) -> None:
    own = alias.what.split("`")[1]
    value = EVERY_TENSOR[own]
    assert parse_request(PROMPT | {alias.name: value}, {}) == parse_request(PROMPT | {own: value}, {})
    assert "given twice" in refusal(PROMPT | {alias.name: value, own: value})


def test_parameters_stand_in_for_tensors_under_any_of_their_names() -> None:
    text = (
        '{"max_tokens": 4, "temperature": 1, "sampling_param_top_k": 2, "stop": "x", "stream": true, "id": "r1", "triton_x": 1}'
    )
    parsed = parse_request(PROMPT, parse_parameters(text))
    assert parsed.sampling == SamplingParams(max_tokens=4, temperature=1.0, top_k=2, stop=("x",))
    assert parsed.streaming
    assert parse_parameters("") == {}


@pytest.mark.parametrize("spec", INPUTS, ids=lambda spec: spec.name)
def test_every_input_can_be_a_parameter_too(spec: Any) -> None:
    if spec.name in ("bad_words", "stop"):  # one is refused, one cancels
        return
    values: dict[str, object] = {
        "TYPE_STRING": "json",
        "TYPE_BOOL": True,
        "TYPE_INT32": 1,
        "TYPE_UINT64": 1,
        "TYPE_FP32": 1.0,
    }
    pairs = {
        "sampling_param_logit_bias_ids": {"logit_bias_values": 1.0},
        "sampling_param_logit_bias_values": {"logit_bias_ids": 1},
    }
    pairs["guided_decoding_guide"] = {"guided_decoding_guide_type": "regex"}
    given = {spec.name: values[spec.data_type], **pairs.get(spec.name, {})}
    tensors = {} if spec.name in ("text_input", "input_ids") else PROMPT
    array = strings("json") if spec.data_type == "TYPE_STRING" else np.array([values[spec.data_type]])
    tensor = parse_request({**tensors, spec.name: array}, pairs.get(spec.name, {}))
    assert parse_request(tensors, given) == tensor
    assert spec.length in (1, ANY)


def test_a_boolean_stop_cancels_whatever_else_is_there() -> None:
    assert parse_request({"stop": np.array([True])}, {}) == ParsedRequest(cancel=True)
    assert parse_request(EVERY_TENSOR, {"stop": True}) == ParsedRequest(cancel=True)
    assert not parse_request(PROMPT | {"stop": np.array([False])}, {}).cancel
    assert "exactly one" in refusal({"stop": np.array([False])})


def test_a_prompt_is_needed_exactly_once() -> None:
    both = PROMPT | {"input_ids": np.array([1], dtype=np.int32)}
    assert refusal({}) == refusal(both) == "give exactly one of text_input and input_ids"


def test_an_unknown_parameter_names_the_nearest() -> None:
    assert refusal(PROMPT, {"max_tokns": 4}) == "unknown parameter 'max_tokns' (did you mean 'max_tokens'?)"
    assert refusal(PROMPT, {"zzz": 4}) == "unknown parameter 'zzz'"


def test_the_same_thing_twice_is_refused_and_both_names_are_said() -> None:
    tensors = PROMPT | {"sampling_param_max_tokens": np.array([7], dtype=np.int32)}
    message = "max_tokens is given twice, as the tensor sampling_param_max_tokens and as the parameter max_tokens"
    assert refusal(tensors, {"max_tokens": 7}) == message
    assert "given twice" in refusal(PROMPT, {"stop": "a", "stop_words": "b"})
    assert "given twice" in refusal(PROMPT, {"streaming": True, "stream": True})


def test_what_is_not_supported_says_what_is() -> None:
    assert "logit_bias_ids" in refusal(PROMPT | {"bad_words": strings("no")})
    assert "never repeats its prompt" in refusal(PROMPT, {"exclude_input_in_output": False})


def test_a_guide_is_a_kind_and_a_text() -> None:
    def guide(**given: object) -> Guide | None:
        return parse_request(PROMPT, given).sampling.guide

    assert guide(guided_decoding_guide_type="json") == Guide(kind="json_object")
    schema = guide(guided_decoding_guide_type="json_schema", guided_decoding_guide='{"type": "object"}')
    assert schema == Guide(kind="json_schema", text='{"type": "object"}')
    unknown = refusal(PROMPT, {"guided_decoding_guide_type": "ebnf_grammar"})
    assert unknown == "guided_decoding_guide_type is 'ebnf_grammar', expected one of json, json_schema, regex"
    assert "without guided_decoding_guide_type" in refusal(PROMPT, {"guided_decoding_guide": "x"})


def test_a_logit_bias_needs_a_value_for_each_token_and_each_token_once() -> None:
    ids = PROMPT | {"sampling_param_logit_bias_ids": np.array([5, 5], dtype=np.int32)}
    assert refusal(ids) == "logit_bias_ids has 2 tokens and logit_bias_values has 0 values"
    values = {"sampling_param_logit_bias_values": np.array([1.0, 2.0], dtype=np.float32)}
    assert refusal(ids | values) == "logit_bias_ids names a token twice"


def test_sums_of_probabilities_need_no_logprobs_to_be_asked_for() -> None:
    for name in ("return_cumulative_logprob", "return_log_probs"):
        parsed = parse_request(PROMPT, {name: True})
        assert parsed.sampling.logprobs == 0
        assert not parsed.returns.logprobs
    assert parse_request(PROMPT, {"return_log_probs": True, "logprobs": 3}).sampling.logprobs == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", "5"),
        ("max_tokens", 1.5),
        ("max_tokens", True),
        ("max_tokens", None),
        ("temperature", "hot"),
        ("max_tokens", 2**31),
        ("top_k", -(2**70)),
        ("temperature", 10**400),
        ("seed", 1e20),
        ("seed", -5),
        ("seed", 2**64),
        ("stop", 3),
        ("stop", "\ud800"),
        ("ignore_eos", 1),
        ("cache_salt", 5),
        ("deadline_s", "soon"),
    ],
)
def test_a_parameter_of_the_wrong_type_is_named(name: str, value: object) -> None:
    assert refusal(PROMPT, {name: value}).startswith(f"{name} is ")


def test_more_or_fewer_values_than_one_are_refused() -> None:
    assert refusal({"text_input": strings("a", "b")}) == "text_input holds 2 values, expected one"
    tensors = PROMPT | {"sampling_param_top_k": np.array([], dtype=np.int32)}
    assert refusal(tensors) == "sampling_param_top_k holds 0 values, expected one"


def test_text_that_is_not_utf8_is_refused() -> None:
    assert refusal({"text_input": np.array([b"\xff"], dtype=np.object_)}) == "text_input is not valid UTF-8"
