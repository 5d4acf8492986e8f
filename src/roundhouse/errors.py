"""The one error tree. Every error names the thing it is about and says what to do.

::

    RoundhouseError                 exit 1
    ├── UsageError                  exit 2   the caller asked for something that does not exist
    │   └── RecipeError             exit 2   a recipe with an unknown key or an impossible value
    ├── PlanRefusedError            exit 3   the plan found the recipe illegal or too large
    ├── ModelError                  exit 1   a model folder that is incomplete or contradicts itself
    ├── BuildError                  exit 1   a build that could not finish; no engine is left behind
    │   └── VerifyError             exit 1   the written checkpoint is not what was asked for
    ├── EngineError                 exit 1   an engine folder that is missing, damaged or changed
    ├── SetupError                  exit 1   this machine lacks something; `roundhouse doctor` tells
    └── ServeError                  exit 1   a server or an engine process that failed
        ├── RequestError            one request that cannot be served; carries a `code`
        └── BenchmarkStoppedError   a benchmark or an evaluation was asked to end; what was measured is kept

``exit_code`` is what the command line ends with. ``hint`` says what to do about it.
"""

from __future__ import annotations

from typing import ClassVar, Literal

__all__ = [
    "BenchmarkStoppedError",
    "BuildError",
    "EngineError",
    "ModelError",
    "PlanRefusedError",
    "RecipeError",
    "RequestCode",
    "RequestError",
    "RoundhouseError",
    "ServeError",
    "SetupError",
    "UsageError",
    "VerifyError",
]

RequestCode = Literal[
    "invalid_request",
    "page_tag_mismatch",
    "page_content_mismatch",
    "cancelled",
    "overloaded",
    "deadline",
    "unavailable",
    "internal",
]
"""Why one request failed, in a word that clients may switch on. ``page_tag_mismatch`` and ``page_content_mismatch``: a KV page
was not the request's own any more, or not what was written into it, and nothing was computed from it; ``overloaded``: the
waiting line is full, try again later; ``deadline``: it had not ended in the time that it was given."""


class RoundhouseError(Exception):
    """Base of everything this package raises on purpose.

    Args:
        message: what is wrong, naming the thing.
        hint: what to do about it; shown on a line of its own.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class UsageError(RoundhouseError):
    """The caller named something that does not exist or cannot be."""

    exit_code = 2


class RecipeError(UsageError):
    """A recipe that cannot be read: an unknown key, a wrong value, two keys that exclude each other."""


class PlanRefusedError(RoundhouseError):
    """The plan refuses the recipe; ``reasons`` holds every reason, not only the first."""

    exit_code = 3

    def __init__(self, message: str, *, reasons: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reasons = reasons


class ModelError(RoundhouseError):
    """A model folder or file that is missing, incomplete, truncated or contradicts itself."""


class BuildError(RoundhouseError):
    """A build that could not finish. Nothing of it is left under ``engines/``."""


class VerifyError(BuildError):
    """The written checkpoint differs from what the recipe asked for."""


class EngineError(RoundhouseError):
    """An engine folder that is missing, incomplete or not what its manifest says."""


class SetupError(RoundhouseError):
    """This machine or environment lacks something that the action needs."""


class ServeError(RoundhouseError):
    """A server, a front or an engine process that could not start or broke."""


class RequestError(ServeError):
    """One request that cannot be served. It ends that request only, never a neighbour."""

    def __init__(self, code: RequestCode, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code: RequestCode = code


class BenchmarkStoppedError(ServeError):
    """A benchmark or an evaluation was asked to end, and did; what was measured before is kept."""
