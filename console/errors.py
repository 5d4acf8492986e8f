"""What can be wrong with a request to the console, beside what :mod:`roundhouse.errors` knows."""

from __future__ import annotations

from roundhouse.errors import UsageError

__all__ = ["ConflictError", "ForbiddenError", "NotFoundError"]


class NotFoundError(UsageError):
    """There is no such thing (404)."""


class ConflictError(UsageError):
    """The thing is in a state in which this cannot be done (409)."""


class ForbiddenError(UsageError):
    """Whoever asks may not do this (403)."""
