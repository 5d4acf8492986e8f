"""Errors for programs: problem details (RFC 9457), and which error is which."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from roundhouse.errors import (
    BuildError,
    EngineError,
    ModelError,
    PlanRefusedError,
    RoundhouseError,
    ServeError,
    SetupError,
    UsageError,
)

from ..errors import ConflictError, ForbiddenError, LoginNeededError, NotFoundError

__all__ = ["API", "MEDIA_TYPE", "FieldProblem", "Problem", "kind_of"]

API = "/api/"
"""Below this programs ask."""
MEDIA_TYPE = "application/problem+json"
_PLAIN = "about:blank"
_TYPE = "urn:roundhouse:problem:"
_KINDS: tuple[tuple[type[RoundhouseError], int, str], ...] = (
    (LoginNeededError, 401, "login-needed"),
    (ForbiddenError, 403, "forbidden"),
    (NotFoundError, 404, "not-found"),
    (ConflictError, 409, "conflict"),
    (PlanRefusedError, 422, "plan-refused"),
    (ModelError, 422, "model"),
    (UsageError, 422, "usage"),
    (SetupError, 503, "setup"),
    (EngineError, 500, "engine"),
    (BuildError, 500, "build"),
    (ServeError, 500, "serve"),
    (RoundhouseError, 500, "failed"),
)


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


_Text = Annotated[str, BeforeValidator(_plain)]
"""What was sent to us and is no text becomes question marks, where an error repeats it."""


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    field: _Text
    """Its name, with dots between levels; empty: all of them together."""
    problem: _Text


class Problem(BaseModel):
    """An error, as RFC 9457 has it."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    type: str = Field(pattern=f"^({_PLAIN}|{_TYPE}[a-z-]+)$")
    """`urn:roundhouse:problem:` and what kind of error it is; `about:blank`: what the status says."""
    title: str
    """What the status means."""
    status: int
    detail: _Text
    """What is wrong, naming the thing."""
    hint: _Text | None
    """What to do about it."""
    errors: tuple[FieldProblem, ...]
    """What is wrong with fields."""
    reasons: tuple[_Text, ...]
    """Why the plan refuses a recipe."""

    @classmethod
    def of(cls, kind: str | None, **values: Any) -> Self:
        """Of a kind, from :func:`kind_of`; None: what the status says."""
        return cls(type=_PLAIN if kind is None else f"{_TYPE}{kind}", **values)

    def as_bytes(self) -> bytes:
        """As JSON."""
        return self.model_dump_json().encode()


def kind_of(error: RoundhouseError) -> tuple[int, str]:
    """The status of an error, and the last word of its problem's ``type``."""
    return next((status, kind) for of, status, kind in _KINDS if isinstance(error, of))
