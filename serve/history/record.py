"""What every header and every line of a record is made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Record", "storable"]


class Record(BaseModel):
    """Frozen, without unknown keys, and without numbers that JSON does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def storable(text: str) -> str:
    """A text as records can hold it: halves of characters, which JSON of elsewhere may have, become question marks."""
    return text.encode(errors="replace").decode()
