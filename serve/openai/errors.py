"""Errors in OpenAI's form: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ApiError", "api_error_from_triton", "validation_error"]

_STATUS = {"invalid_request": 400, "unavailable": 503, "cancelled": 499}
_INTERNAL = 500


class ApiError(Exception):
    """What a client is told when a request fails.

    Args:
        status: HTTP status.
        message: what is wrong and what to do.
        code: a word that clients may switch on.
        param: the field it is about.
    """

    def __init__(self, status: int, message: str, *, code: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body of the response."""
        kind = "invalid_request_error" if self.status < _INTERNAL else "server_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


def api_error_from_triton(text: str) -> ApiError:
    """Read an error of our backend, ``[code] message``; anything else is an internal error."""
    code, bracket, message = text.removeprefix("[").partition("] ")
    if not text.startswith("[") or not bracket:
        return ApiError(_INTERNAL, text, code="internal")
    return ApiError(_STATUS.get(code, _INTERNAL), message, code=code)


def validation_error(problems: Sequence[Mapping[str, Any]]) -> ApiError:
    """The first problem that pydantic found, naming the field."""
    first = problems[0]
    if first["type"] == "json_invalid":
        return ApiError(400, "the body is not valid JSON", code="invalid_request")
    path = [str(part) for part in first["loc"] if part != "body"]
    message = str(first["msg"]).removeprefix("Value error, ")
    param = path[0] if path else None
    return ApiError(400, f"{param}: {message}" if param else message, code="invalid_request", param=param)
