"""What a client encodes is what the backend reads."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import InferInput
from tritonclient.utils import deserialize_bytes_tensor

from roundhouse.serve.engine.request import Guide, SamplingParams
from roundhouse.serve.triton.contract import INPUTS
from roundhouse.serve.triton.encode import encode_inputs, sampling_values
from roundhouse.serve.triton.tensors import parse_request

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
FLOAT = st.floats(-4, 4, width=32)
TOKEN = st.integers(0, 2**31 - 1)
KINDS = {"BYTES": np.object_, "BOOL": np.bool_, "INT32": np.int32, "UINT64": np.uint64, "FP32": np.float32}

SAMPLING = st.builds(
    SamplingParams,
    max_tokens=TOKEN,
    min_tokens=TOKEN,
    temperature=FLOAT,
    top_p=FLOAT,
    top_k=TOKEN,
    min_p=FLOAT,
    repetition_penalty=FLOAT,
    presence_penalty=FLOAT,
    frequency_penalty=FLOAT,
    logit_bias=st.dictionaries(TOKEN, FLOAT, max_size=3),
    seed=st.none() | st.integers(0, 2**64 - 1),
    stop=st.lists(TEXT, max_size=3).map(tuple),
    stop_token_ids=st.lists(TOKEN, max_size=3).map(tuple),
    ignore_eos=st.booleans(),
    logprobs=st.none() | st.integers(0, 20),
    n=st.integers(1, 5),
    guide=st.none()
    | st.just(Guide(kind="json_object"))
    | st.builds(Guide, kind=st.sampled_from(["json_schema", "regex"]), text=TEXT),
)


def as_triton_sees(tensors: list[InferInput]) -> dict[str, Any]:
    """The arrays that the backend is given, out of the bytes that travel; types must be those of the config."""
    kinds = {spec.name: spec.data_type.removeprefix("TYPE_").replace("STRING", "BYTES") for spec in INPUTS}
    found = {}
    for tensor in tensors:
        kind, raw = tensor.datatype(), tensor._get_content()
        assert kind == kinds[tensor.name()]
        found[tensor.name()] = deserialize_bytes_tensor(raw) if kind == "BYTES" else np.frombuffer(raw, KINDS[kind])
    return found


@given(SAMPLING)
def test_sampling_parameters_come_back_as_they_went(sampling: SamplingParams) -> None:
    tensors = encode_inputs({"text_input": "x", **sampling_values(sampling)})
    assert parse_request(as_triton_sees(tensors), {}).sampling == sampling


def test_defaults_are_not_sent() -> None:
    assert sampling_values(SamplingParams()) == {}


def test_everything_else_comes_back_as_it_went() -> None:
    values = {"input_ids": [1, 2], "streaming": True, "cache_salt": "é", "priority": -1, "deadline_s": 0.5}
    parsed = parse_request(as_triton_sees(encode_inputs(values)), {})
    assert parsed.prompt_ids == [1, 2]
    assert (parsed.streaming, parsed.cache_salt, parsed.priority, parsed.deadline_s) == (True, "é", -1, 0.5)
