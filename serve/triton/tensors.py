"""From Triton's tensors and request parameters to a request, without Triton.

Sampling parameters arrive as tensors (``sampling_param_max_tokens``) or, shorter, as request
parameters (``max_tokens``); both at once is an error, and so is a parameter nobody knows.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from roundhouse.errors import RequestError

from ..engine.request import SamplingParams
from .contract import SAMPLING_PREFIX

__all__ = ["ParsedRequest", "parse_parameters", "parse_request"]

Array = npt.NDArray[Any]

_RESERVED = "triton_"
"""Prefix of parameters that Triton keeps for itself."""
_IGNORED_PARAMETERS = frozenset({"id"})
"""``/generate`` passes the request id along as a parameter too."""


@dataclass(frozen=True)
class ParsedRequest:
    """What a client asked for; exactly one of ``prompt`` and ``prompt_ids`` is set."""

    prompt: str | None
    prompt_ids: list[int] | None
    sampling: SamplingParams
    streaming: bool


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
    prompt, prompt_ids = _prompt(tensors)
    streaming = _boolean("streaming", _one("streaming", tensors["streaming"])) if "streaming" in tensors else False
    return ParsedRequest(prompt=prompt, prompt_ids=prompt_ids, sampling=_sampling(tensors, parameters), streaming=streaming)


def _prompt(tensors: Mapping[str, Array]) -> tuple[str | None, list[int] | None]:
    text, ids = tensors.get("text_input"), tensors.get("input_ids")
    if (text is None) == (ids is None):
        raise _invalid("give exactly one of text_input and input_ids")
    if ids is not None:
        return None, [int(token) for token in ids.reshape(-1)]
    return _text("text_input", _one("text_input", tensors["text_input"])), None


def _sampling(tensors: Mapping[str, Array], parameters: Mapping[str, object]) -> SamplingParams:
    given: dict[str, Any] = {}
    for name, read in _READERS.items():
        tensor = tensors.get(SAMPLING_PREFIX + name)
        if tensor is not None:
            given[name] = _texts(SAMPLING_PREFIX + name, tensor) if name == "stop" else read(name, _one(name, tensor))
    for name, value in parameters.items():
        if name in _IGNORED_PARAMETERS or name.startswith(_RESERVED):
            continue
        if name not in _READERS:
            nearest = difflib.get_close_matches(name, _READERS, n=1)
            raise _invalid(f"unknown parameter {name!r}" + (f" (did you mean {nearest[0]!r}?)" if nearest else ""))
        if name in given:
            raise _invalid(f"{name} is given twice, as the tensor {SAMPLING_PREFIX}{name} and as a parameter")
        given[name] = _READERS[name](name, value)
    return SamplingParams(**given)


def _one(name: str, tensor: Array) -> object:
    if tensor.size != 1:
        raise _invalid(f"{name} holds {tensor.size} values, expected one")
    return tensor.reshape(-1)[0].item() if isinstance(tensor.reshape(-1)[0], np.generic) else tensor.reshape(-1)[0]


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _invalid(f"{name} is {value!r}, expected a whole number")
    return value


def _count(name: str, value: object) -> int:
    return _within(name, value, -(2**31), 2**31 - 1)


def _seed(name: str, value: object) -> int:
    return _within(name, value, 0, 2**64 - 1)


def _within(name: str, value: object, least: int, most: int) -> int:
    """A whole number that its tensor's type can hold: request parameters come in any size."""
    number = _whole(name, value)
    if not least <= number <= most:
        raise _invalid(f"{name} is {number}, expected {least} to {most}")
    return number


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _invalid(f"{name} is {value!r}, expected a number")
    try:
        return float(value)
    except OverflowError:
        raise _invalid(f"{name} is larger than any number that can be used") from None


def _boolean(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _invalid(f"{name} is {value!r}, expected true or false")
    return value


def _text(name: str, value: object) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise _invalid(f"{name} is not valid UTF-8") from None
    if not isinstance(value, str):
        raise _invalid(f"{name} is {value!r}, expected a string")
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can spell half a character
        raise _invalid(f"{name} is {value!r}, which is not valid Unicode") from None
    return value


def _texts(name: str, tensor: Array) -> tuple[str, ...]:
    return tuple(_text(name, value) for value in tensor.reshape(-1))


def _one_stop(name: str, value: object) -> tuple[str, ...]:
    """A request parameter can only hold one stop string; the tensor holds several."""
    return (_text(name, value),)


_READERS: dict[str, Callable[[str, object], object]] = {
    "max_tokens": _count,
    "temperature": _number,
    "top_k": _count,
    "top_p": _number,
    "seed": _seed,
    "stop": _one_stop,
    "ignore_eos": _boolean,
}


def _invalid(message: str) -> RequestError:
    return RequestError("invalid_request", message)
