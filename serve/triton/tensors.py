"""From Triton's tensors and request parameters to a request, without Triton.

What a tensor of the contract says can also be a request parameter, under any of the tensor's names or, shorter, without
``sampling_param_``. The same thing twice, under whatever names, is an error, and so is a parameter nobody knows.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from roundhouse.errors import RequestError

from ..engine.request import Guide, SamplingParams
from .contract import INPUTS, SAMPLING_PREFIX, TensorSpec
from .values import Array, one, read_parameter, read_tensor

__all__ = ["ParsedRequest", "Returns", "parse_parameters", "parse_request"]

_RESERVED = "triton_"
"""Prefix of parameters that Triton keeps for itself."""
_IGNORED_PARAMETERS = frozenset({"id"})
"""``/generate`` passes the request id along as a parameter too."""

_TENSORS = {spec.name: spec for spec in INPUTS}
_PARAMETERS = {spec.name.removeprefix(SAMPLING_PREFIX): spec for spec in INPUTS} | _TENSORS
_SAMPLING = frozenset(field.name for field in msgspec.structs.fields(SamplingParams))
_GUIDES = ("json", "json_schema", "regex")


@dataclass(frozen=True)
class Returns:
    """Which of the outputs that are not always there a client wants."""

    finish_reason: bool = True
    stop_reason: bool = True
    logprobs: bool = False
    cumulative_logprob: bool = False
    log_probs: bool = False


@dataclass(frozen=True)
class ParsedRequest:
    """What a client asked for. Exactly one of ``prompt`` and ``prompt_ids`` is set; or only ``cancel`` or ``pages``."""

    prompt: str | None = None
    prompt_ids: list[int] | None = None
    sampling: SamplingParams = field(default_factory=SamplingParams)
    streaming: bool = False
    cancel: bool = False
    """End the live requests with this request's id."""
    pages: bool = False
    """Say who holds each page."""
    cache_salt: str = ""
    priority: int = 0
    deadline_s: float | None = None
    returns: Returns = Returns()


def parse_parameters(text: str) -> dict[str, object]:
    """Read the JSON object that Triton hands the backend for a request's parameters."""
    parameters = json.loads(text) if text else {}
    return parameters if isinstance(parameters, dict) else {}


def parse_request(tensors: Mapping[str, Array], parameters: Mapping[str, object]) -> ParsedRequest:
    """Read one request.

    Args:
        tensors: input tensors by name, as :data:`roundhouse.serve.triton.contract.INPUTS` lists them
            (strings are object arrays of UTF-8 bytes).
        parameters: Triton request parameters: numbers, strings and booleans.

    Raises:
        RequestError: ``invalid_request``, naming the tensor or parameter.
    """
    given = _given(tensors, parameters)
    if given.get("cancel", False):
        return ParsedRequest(cancel=True)
    if given.get("pages", False):
        return ParsedRequest(pages=True)
    if "bad_words" in given:
        raise _invalid("bad_words is not supported; give the tokens to sampling_param_logit_bias_ids, with values of -100")
    if not given.get("exclude_input", True):
        raise _invalid("sampling_param_exclude_input_from_output is false; an answer never repeats its prompt here")
    prompt, prompt_ids = _prompt(given)
    returns = Returns(
        finish_reason=given.get("return_finish_reason", True),
        stop_reason=given.get("return_stop_reason", True),
        logprobs="logprobs" in given,
        cumulative_logprob=given.get("return_cumulative_logprob", False),
        log_probs=given.get("return_log_probs", False),
    )
    return ParsedRequest(
        prompt=prompt,
        prompt_ids=prompt_ids,
        sampling=_sampling(given, returns),
        streaming=given.get("streaming", False),
        cache_salt=given.get("cache_salt", ""),
        priority=given.get("priority", 0),
        deadline_s=given.get("deadline_s"),
        returns=returns,
    )


def _given(tensors: Mapping[str, Array], parameters: Mapping[str, object]) -> dict[str, Any]:
    """Every value, by what it sets."""
    given: dict[str, Any] = {}
    names: dict[str, str] = {}

    def take(spec: TensorSpec, name: str, value: Any) -> None:
        if spec.sets in given:
            raise _invalid(f"{spec.sets} is given twice, as {names[spec.sets]} and as {name}")
        given[spec.sets], names[spec.sets] = value, name

    for name, tensor in tensors.items():
        take(_TENSORS[name], f"the tensor {name}", read_tensor(_TENSORS[name], tensor))
    for name, value in parameters.items():
        if name in _IGNORED_PARAMETERS or name.startswith(_RESERVED):
            continue
        spec = _parameter(name, value)
        take(spec, f"the parameter {name}", read_parameter(spec, name, value))
    return given


def _parameter(name: str, value: object) -> TensorSpec:
    """The tensor that a parameter stands in for. ``stop`` is two: a boolean cancels, a string is a stop string."""
    if name == "stop":
        return _TENSORS[name if isinstance(value, bool) else SAMPLING_PREFIX + name]
    spec = _PARAMETERS.get(name)
    if spec is None:
        nearest = difflib.get_close_matches(name, _PARAMETERS, n=1)
        raise _invalid(f"unknown parameter {name!r}" + (f" (did you mean {nearest[0]!r}?)" if nearest else ""))
    return spec


def _prompt(given: Mapping[str, Any]) -> tuple[str | None, list[int] | None]:
    text, ids = given.get("text_input"), given.get("input_ids")
    if (text is None) == (ids is None):
        raise _invalid("give exactly one of text_input and input_ids")
    return (None, list(ids)) if ids is not None else (one("text_input", text), None)


def _sampling(given: Mapping[str, Any], returns: Returns) -> SamplingParams:
    fields = {name: value for name, value in given.items() if name in _SAMPLING}
    if returns.cumulative_logprob or returns.log_probs:
        fields.setdefault("logprobs", 0)
    return SamplingParams(**fields, logit_bias=_logit_bias(given), guide=_guide(given))


def _logit_bias(given: Mapping[str, Any]) -> dict[int, float]:
    ids, values = given.get("logit_bias_ids", ()), given.get("logit_bias_values", ())
    if len(ids) != len(values):
        raise _invalid(f"logit_bias_ids has {len(ids)} tokens and logit_bias_values has {len(values)} values")
    bias: dict[int, float] = dict(zip(ids, values, strict=True))
    if len(bias) != len(ids):
        raise _invalid("logit_bias_ids names a token twice")
    return bias


def _guide(given: Mapping[str, Any]) -> Guide | None:
    kind, text = given.get("guided_decoding_guide_type"), given.get("guided_decoding_guide", "")
    if kind is None:
        if text:
            raise _invalid("guided_decoding_guide is given without guided_decoding_guide_type")
        return None
    if kind == "json":
        return Guide(kind="json_object")
    if kind not in _GUIDES:
        raise _invalid(f"guided_decoding_guide_type is {kind!r}, expected one of {', '.join(_GUIDES)}")
    return Guide(kind=kind, text=text)


def _invalid(message: str) -> RequestError:
    return RequestError("invalid_request", message)
