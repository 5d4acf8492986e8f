"""Reads single values of tensors and request parameters, and says which one is wrong and why.

Tensors have the type that the config gives them, but hold any number of values; request parameters hold one value, of any
type and size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from roundhouse.errors import RequestError

from .contract import ANY, TensorSpec, TritonType

__all__ = ["Array", "read_parameter", "read_tensor"]

Array = npt.NDArray[Any]


def read_tensor(spec: TensorSpec, tensor: Array) -> Any:
    """The value of a tensor: a bool, int, float or str, or a tuple of these where the contract allows any number.

    Args:
        spec: what the contract says of it.
        tensor: of the contract's type; strings are UTF-8 bytes.

    Raises:
        RequestError: ``invalid_request``, naming the tensor.
    """
    values = tensor.reshape(-1).tolist()
    if spec.data_type == "TYPE_STRING":
        values = [_text(spec.name, value) for value in values]
    return tuple(values) if spec.length == ANY else one(spec.name, values)


def read_parameter(spec: TensorSpec, name: str, value: object) -> Any:
    """The value of a request parameter that stands in for a tensor; where the tensor holds many, a tuple of this one.

    Args:
        spec: the tensor that it stands in for.
        name: the parameter's own name, for messages.
        value: as JSON gave it.

    Raises:
        RequestError: ``invalid_request``, naming the parameter.
    """
    found = _read(name, spec.data_type, value)
    return (found,) if spec.length == ANY else found


def one(name: str, values: Any) -> Any:
    """The only one of some values.

    Raises:
        RequestError: ``invalid_request``: there are more, or none.
    """
    if len(values) != 1:
        raise RequestError("invalid_request", f"{name} holds {len(values)} values, expected one")
    return values[0]


def _read(name: str, kind: TritonType, value: object) -> bool | int | float | str:
    if kind == "TYPE_STRING":
        return _text(name, value)
    if kind == "TYPE_BOOL":
        return _boolean(name, value)
    if kind == "TYPE_FP32":
        return _number(name, value)
    bounds = np.iinfo(np.int32 if kind == "TYPE_INT32" else np.uint64)
    return _whole(name, value, int(bounds.min), int(bounds.max))


def _whole(name: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(name, value, "a whole number")
    if not least <= value <= most:
        raise _wrong(name, value, f"{least} to {most}")
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(name, value, "a number")
    try:
        return float(value)
    except OverflowError:
        raise RequestError("invalid_request", f"{name} is larger than any number that can be used") from None


def _boolean(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return value


def _text(name: str, value: object) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise RequestError("invalid_request", f"{name} is not valid UTF-8") from None
    if not isinstance(value, str):
        raise _wrong(name, value, "a string")
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can spell half a character
        raise RequestError("invalid_request", f"{name} is {value!r}, which is not valid Unicode") from None
    return value


def _wrong(name: str, value: object, expected: str) -> RequestError:
    return RequestError("invalid_request", f"{name} is {value!r}, expected {expected}")
