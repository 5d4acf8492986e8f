"""One thing that `roundhouse doctor` looked at."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["Finding", "State"]

State = Literal["ok", "limited", "absent", "missing"]
"""``missing``: needed for building and serving with the torch target. ``absent``: not here, and not needed for that."""


class Finding(BaseModel):
    """One thing that was looked at."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    state: State
    detail: str
    remedy: str = ""
