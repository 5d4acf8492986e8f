"""Moments in records: with their zone, and of this age."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, Field

__all__ = ["Moment"]

Moment = Annotated[AwareDatetime, Field(ge=datetime(2000, 1, 1, tzinfo=UTC), lt=datetime(2200, 1, 1, tzinfo=UTC))]
"""Files come from elsewhere: a date without a zone says nothing, and one of the year 1 fits no database."""
