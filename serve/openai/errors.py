"""Errors in OpenAI's form: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from ..engine.request import SamplingParams

if TYPE_CHECKING:
    from fastapi.responses import JSONResponse

__all__ = ["ApiError", "api_error_from_triton", "routing_error", "validation_error"]

_STATUS = {"invalid_request": 400, "cancelled": 499, "overloaded": 429, "deadline": 408, "unavailable": 503}
_CODES = {"overloaded": "rate_limit_exceeded", "deadline": "timeout"}
"""What OpenAI calls some of our codes."""
_TYPES = {401: "authentication_error", 408: "timeout_error", 429: "rate_limit_error"}
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 413: {"Connection": "close"}, 429: {"Retry-After": "1"}}
_INTERNAL = 500
_NO_JSON = "the body is not valid JSON"
_NESTED = ("messages", "tools", "stop_token_ids", "stream_options")
"""Fields whose errors say where in them."""
_TAGGED = ("prompt", "stop", "response_format", "tool_choice")
"""The same for fields of several forms: the form found stands in pydantic's path after the field's name."""
_WORDS = {
    "dict_type": "it must be a JSON object",
    "model_type": "it must be a JSON object",
    "model_attributes_type": "it must be a JSON object",
    "extra_forbidden": "this field is not known",
    "missing": "this field is missing",
}
"""What pydantic says in the words of Python, or as if there were a form to fill in."""
_MEANT = {"prompt": "prompt", "token": "prompt", "JSON": "guide", "regular": "guide"}
"""First words of the engine's messages that do not begin with a field, by what they are about."""


class ApiError(Exception):
    """What a client is told when a request fails.

    Args:
        status: HTTP status.
        message: what is wrong and what to do.
        code: a word that clients may switch on.
        param: the field it is about.
    """

    def __init__(self, status: int, message: str, *, code: str, param: str | None = None) -> None:
        message = message.encode(errors="backslashreplace").decode()  # it may quote what is no text, and must be sent
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body of the response."""
        kind = _TYPES.get(self.status, "invalid_request_error" if self.status < _INTERNAL else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    @property
    def response(self) -> JSONResponse:
        """The whole response."""
        from fastapi.responses import JSONResponse

        return JSONResponse(self.body, status_code=self.status, headers=_HEADERS.get(self.status))


def api_error_from_triton(text: str) -> ApiError:
    """Read an error of our backend, ``[code] message``; anything else is an internal error.

    Messages about a parameter begin with its name, and so name the field; those about the prompt and the guide say so.
    """
    code, bracket, message = text.removeprefix("[").partition("] ")
    if not text.startswith("[") or not bracket:
        return ApiError(_INTERNAL, text, code="internal")
    word = message.removeprefix("the ").partition(" ")[0].removesuffix(":")
    param = _MEANT.get(word, word if word in SamplingParams.__struct_fields__ else None) if code == "invalid_request" else None
    return ApiError(_STATUS.get(code, _INTERNAL), message, code=_CODES.get(code, code), param=param)


def routing_error(status: int, detail: str, asked: str) -> ApiError:
    """What the web framework refuses by itself.

    Args:
        status: HTTP status.
        detail: its own words.
        asked: method and path.
    """
    if status == HTTPStatus.NOT_FOUND:
        return ApiError(status, f"there is no {asked}; routes begin with /v1/", code="unknown_url")
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return ApiError(status, f"{asked}: this method is not allowed here", code="method_not_allowed")
    if status == HTTPStatus.BAD_REQUEST:  # all that it refuses so: bytes that are no text, or lists in lists without end
        return ApiError(status, _NO_JSON, code="invalid_request")
    return ApiError(status, detail, code="invalid_request" if status < _INTERNAL else "internal")


def validation_error(problems: Sequence[Mapping[str, Any]], *, content_type: str | None) -> ApiError:
    """The first problem that pydantic found, naming the field.

    A body of another type than JSON is not parsed: a web page in the user's own browser may send
    such bodies to any local port.
    """
    if not _is_json(content_type):
        given = f"it is {content_type}" if content_type else "it has none"
        message = f"send the body as JSON, with the header 'content-type: application/json' ({given})"
        return ApiError(400, message, code="invalid_request")
    first = problems[0]
    if first["type"] == "json_invalid":
        return ApiError(400, _NO_JSON, code="invalid_request")
    message = _WORDS.get(first["type"]) or str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "field_error":
        return ApiError(400, message, code="invalid_request", param=first["ctx"]["param"])
    param = _field([part for part in first["loc"] if part != "body"])
    return ApiError(400, f"{param}: {message}" if param else message, code="invalid_request", param=param)


def _field(path: Sequence[str | int]) -> str | None:
    """The name of a field, and for some of them where in it."""
    if not path:
        return None
    name = str(path[0])
    inner = path[1:] if name in _NESTED else path[2:] if name in _TAGGED else []
    return name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in inner)


def _is_json(content_type: str | None) -> bool:
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
