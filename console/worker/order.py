"""What a child is told: handed over in memory that only parent and child have, because it carries the database's password."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from .. import inherited
from ..jobs import Claim

__all__ = ["ORDER", "WorkOrder", "handed_over", "take_order"]

ORDER = "ROUNDHOUSE_WORK_ORDER"
"""The environment variable with the number of the inherited descriptor."""


class WorkOrder(BaseModel):
    """One attempt at a job, and where it is done."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job_id: int
    attempt: int
    fence: int
    kind: str
    payload: dict[str, Any]
    home: Path
    host: str
    model_folders: tuple[Path, ...]
    database: str
    """The URL with its password."""

    @property
    def claim(self) -> Claim:
        """The claim under which it is done."""
        return Claim(self.job_id, self.attempt, self.fence, self.kind, self.payload)


@contextmanager
def handed_over(order: WorkOrder) -> Iterator[int]:
    """A descriptor for a child to inherit; it may be closed here as soon as the child has started."""
    with inherited.handed_over("work-order", order.model_dump_json()) as descriptor:
        yield descriptor


def take_order() -> WorkOrder:
    """What this process is told, once: its own children see neither order nor descriptor."""
    return WorkOrder.model_validate_json(inherited.take_over(int(os.environ.pop(ORDER))))
