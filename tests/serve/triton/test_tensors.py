from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from roundhouse.errors import RequestError
from roundhouse.serve.engine.request import SamplingParams
from roundhouse.serve.triton.contract import INPUTS
from roundhouse.serve.triton.tensors import parse_parameters, parse_request

PROMPT = {"text_input": np.array([b"hi"], dtype=np.object_)}


def refusal(tensors: dict[str, Any], parameters: dict[str, object] | None = None) -> str:
    with pytest.raises(RequestError) as caught:
        parse_request(tensors, parameters or {})
    assert caught.value.code == "invalid_request"
    return caught.value.message


def test_every_tensor_of_the_contract_is_read() -> None:
    tensors: dict[str, Any] = {
        "text_input": np.array(["grüß".encode()], dtype=np.object_),
        "streaming": np.array([True]),
        "sampling_param_max_tokens": np.array([7], dtype=np.int32),
        "sampling_param_temperature": np.array([0.5], dtype=np.float32),
        "sampling_param_top_k": np.array([3], dtype=np.int32),
        "sampling_param_top_p": np.array([0.25], dtype=np.float32),
        "sampling_param_seed": np.array([2**64 - 1], dtype=np.uint64),
        "sampling_param_stop": np.array([b"a", b"bc"], dtype=np.object_),
        "sampling_param_ignore_eos": np.array([True]),
    }
    assert set(tensors) | {"input_ids"} == {spec.name for spec in INPUTS}
    parsed = parse_request(tensors, {})
    assert (parsed.prompt, parsed.prompt_ids, parsed.streaming) == ("grüß", None, True)
    assert parsed.sampling == SamplingParams(
        max_tokens=7, temperature=0.5, top_k=3, top_p=0.25, seed=2**64 - 1, stop=("a", "bc"), ignore_eos=True
    )


def test_token_ids_are_taken_as_they_are() -> None:
    parsed = parse_request({"input_ids": np.array([1, 2, 3], dtype=np.int32)}, {})
    assert (parsed.prompt, parsed.prompt_ids, parsed.streaming) == (None, [1, 2, 3], False)
    assert parsed.sampling == SamplingParams()


def test_parameters_stand_in_for_tensors() -> None:
    parameters = parse_parameters('{"max_tokens": 4, "temperature": 1, "stop": "x", "id": "r1", "triton_final": true}')
    assert parse_request(PROMPT, parameters).sampling == SamplingParams(max_tokens=4, temperature=1.0, stop=("x",))
    assert parse_parameters("") == {}


def test_a_prompt_is_needed_exactly_once() -> None:
    both = PROMPT | {"input_ids": np.array([1], dtype=np.int32)}
    assert refusal({}) == refusal(both) == "give exactly one of text_input and input_ids"


def test_an_unknown_parameter_names_the_nearest() -> None:
    assert refusal(PROMPT, {"max_tokns": 4}) == "unknown parameter 'max_tokns' (did you mean 'max_tokens'?)"
    assert refusal(PROMPT, {"zzz": 4}) == "unknown parameter 'zzz'"


def test_the_same_thing_twice_is_refused() -> None:
    tensors = PROMPT | {"sampling_param_max_tokens": np.array([7], dtype=np.int32)}
    assert "given twice" in refusal(tensors, {"max_tokens": 7})


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
    ],
)
def test_a_parameter_of_the_wrong_type_is_named(name: str, value: object) -> None:
    assert refusal(PROMPT, {name: value}).startswith(f"{name} is ")


def test_more_or_fewer_values_than_one_are_refused() -> None:
    assert refusal({"text_input": np.array([b"a", b"b"], dtype=np.object_)}) == "text_input holds 2 values, expected one"
    tensors = PROMPT | {"sampling_param_top_k": np.array([], dtype=np.int32)}
    assert refusal(tensors) == "top_k holds 0 values, expected one"


def test_text_that_is_not_utf8_is_refused() -> None:
    assert refusal({"text_input": np.array([b"\xff"], dtype=np.object_)}) == "text_input is not valid UTF-8"
