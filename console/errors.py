"""What can be wrong with a request to the console, beside what :mod:`roundhouse.errors` knows."""

from __future__ import annotations

from roundhouse.errors import RoundhouseError, UsageError

__all__ = ["ConflictError", "FieldError", "ForbiddenError", "LoginNeededError", "NotFoundError"]


class LoginNeededError(RoundhouseError):
    """Nobody is logged in (401)."""

    def __init__(self) -> None:
        super().__init__("log in first", hint="Programs send Authorization: Bearer TOKEN.")


class FieldError(UsageError):
    """One field of a form, or of an API's body, cannot be as it is (422).

    Args:
        field: its name.
        message: what is wrong.
        hint: what to do about it.
    """

    def __init__(self, field: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.field = field


class NotFoundError(UsageError):
    """There is no such thing (404)."""


class ConflictError(UsageError):
    """The thing is in a state in which this cannot be done (409)."""


class ForbiddenError(UsageError):
    """Whoever asks may not do this (403)."""
