"""Moments in records: in UTC, and of this age."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field

__all__ = ["Moment"]

Moment = Annotated[
    AwareDatetime,
    Field(ge=datetime(2000, 1, 1, tzinfo=UTC), lt=datetime(2200, 1, 1, tzinfo=UTC)),
    AfterValidator(lambda at: at.astimezone(UTC)),
]
"""Files come from elsewhere: a date without a zone says nothing, one of another zone would be taken for UTC, and one of the
year 1 fits no database."""
