"""Which files this server can write."""

from __future__ import annotations

from roundhouse.build.extras import require_extra
from roundhouse.errors import SetupError

__all__ = ["parquet_hint"]


def parquet_hint() -> str | None:
    """How to get what writes Parquet; None where it is there."""
    try:
        require_extra("parquet")
    except SetupError as error:
        return error.hint
    return None
