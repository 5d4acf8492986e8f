"""From a request to Triton's input tensors: what :mod:`roundhouse.serve.triton.tensors` reads, for gRPC clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from tritonclient.grpc import InferInput

from ..engine.request import SamplingParams
from .contract import INPUTS, SAMPLING_PREFIX, TritonType

__all__ = ["encode_inputs", "sampling_values"]

_TYPES: dict[TritonType, tuple[type[np.generic], str]] = {
    "TYPE_STRING": (np.object_, "BYTES"),
    "TYPE_BOOL": (np.bool_, "BOOL"),
    "TYPE_INT32": (np.int32, "INT32"),
    "TYPE_UINT64": (np.uint64, "UINT64"),
    "TYPE_FP32": (np.float32, "FP32"),
}
_KINDS = {spec.name: spec.data_type for spec in INPUTS}
_DEFAULTS = SamplingParams()
_GUIDE_TYPES = {"json_object": "json", "json_schema": "json_schema", "regex": "regex"}


def encode_inputs(values: Mapping[str, Any]) -> list[InferInput]:
    """Make the tensors.

    Args:
        values: by the names of the contract: one value, or a sequence of them. Strings must be valid Unicode.
    """
    return [_tensor(name, _KINDS[name], value) for name, value in values.items()]


def sampling_values(sampling: SamplingParams) -> dict[str, Any]:
    """The tensors, by name, that say what differs from the defaults."""
    values = {SAMPLING_PREFIX + name: value for name, value in _changed(sampling) if name not in ("logit_bias", "guide")}
    if sampling.logit_bias:
        values[SAMPLING_PREFIX + "logit_bias_ids"] = list(sampling.logit_bias)
        values[SAMPLING_PREFIX + "logit_bias_values"] = list(sampling.logit_bias.values())
    if sampling.guide is not None:
        values["guided_decoding_guide_type"] = _GUIDE_TYPES[sampling.guide.kind]
        if sampling.guide.text:
            values["guided_decoding_guide"] = sampling.guide.text
    return values


def _changed(sampling: SamplingParams) -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(SamplingParams):
        value = getattr(sampling, field.name)
        if value != getattr(_DEFAULTS, field.name):
            yield field.name, value


def _tensor(name: str, kind: TritonType, value: Any) -> InferInput:
    values = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    dtype, triton_type = _TYPES[kind]
    encoded = [text.encode() for text in values] if kind == "TYPE_STRING" else values
    tensor = InferInput(name, [len(values)], triton_type)
    tensor.set_data_from_numpy(np.array(encoded, dtype=dtype))
    return tensor
