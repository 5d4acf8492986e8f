"""What every header and every line of a record is made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Record"]


class Record(BaseModel):
    """Frozen, without unknown keys, and without numbers that JSON does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
