"""What is shown of integrity events."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = ["EventRow", "Integrity", "IntegrityTotals", "Verdict"]


class EventRow(BaseModel):
    """One row that a page check stopped."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: int
    at: datetime
    host: str
    engine_id: str
    deployment_id: str | None
    deployment_name: str | None
    """None where it is not known, or was forgotten."""
    event: str
    """The name in the error that the client got."""
    kind: str
    request_id: str
    answer: int
    step: int
    column: int
    page: int | None
    expected_tag: int
    found_tag: int | None
    last_holders: list[dict[str, Any]]
    """``request_id``, ``tag``, ``step`` and ``how`` of who got the page last, the latest first."""

    @property
    def sentence(self) -> str:
        """What happened, for somebody who does not know the code."""
        who = f"Request {self.request_id} was stopped before step {self.step}"
        if self.page is None:
            return f"{who}: its page table has no column {self.column}, or more pages than that."
        if self.kind == "content":
            return f"{who}: page {self.page} no longer held what had been written into it."
        if self.kind == "count":
            return f"{who}: its page count was impossible, or left page {self.page} unchecked."
        found = {None: "there is no such page", 0: "nobody holds it"}.get(self.found_tag, f"it carries tag {self.found_tag}")
        return f"{who}: page {self.page} should carry its tag {self.expected_tag}, but {found}."


class IntegrityTotals(BaseModel):
    """What one live deployment has checked since its engine process began."""

    model_config = ConfigDict(frozen=True)

    deployment_id: str
    name: str
    tag_checks: int
    tag_mismatches: int
    content_checks: int
    content_mismatches: int
    pages_quarantined: int
    pages: int
    """Of its whole pool."""
    guard_alive: bool

    @property
    def mismatches(self) -> int:
        """Rows that were stopped."""
        return self.tag_mismatches + self.content_mismatches


class Verdict(BaseModel):
    """Whether all is well, in a sentence."""

    model_config = ConfigDict(frozen=True)

    well: bool
    sentence: str


class Integrity(BaseModel):
    """Whether all is well, and what live deployments have checked."""

    model_config = ConfigDict(frozen=True)

    verdict: Verdict
    deployments: tuple[IntegrityTotals, ...]
