"""What requests that ask for work have in common."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header

__all__ = ["IdempotencyKey"]

IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=200, description="Who asks again with the same key gets what is there."),
]
