"""What of the list of jobs somebody wants to see, as its address says it."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict

from ..jobs.records import JobFilter
from ..models import JobKind, JobState

__all__ = ["JobsWanted"]


class JobsWanted(BaseModel):
    """The filters of the list. Without a kind it lists builds."""

    model_config = ConfigDict(frozen=True, extra="ignore")  # an address has more than filters

    kind: Literal[JobKind, "all"] | None = None
    """A kind, ``all``, or nothing: builds."""
    state: JobState | None = None
    text: str = ""
    who: str = ""

    @property
    def kinds(self) -> tuple[JobKind, ...]:
        """The kinds that are listed; empty: any."""
        if self.kind == "all":
            return ()
        return (self.kind or "build",)

    @property
    def states(self) -> tuple[JobState, ...]:
        """The states that are listed; empty: any."""
        return (self.state,) if self.state else ()

    @property
    def is_filtered(self) -> bool:
        """Whether anything but the list of all builds is wanted."""
        return bool(self.state or self.text or self.who or self.kind)

    @property
    def as_filter(self) -> JobFilter:
        """For the query."""
        text, who = self.text.strip()[:200] or None, self.who.strip()[:200] or None
        return JobFilter(kinds=self.kinds, states=self.states, text=text, requested_by=who)

    def address(self, **changes: str | int) -> str:
        """The query of the same list with other filters; a change of filter starts at its first page."""
        given = {**self.model_dump(), **changes}
        return urlencode({key: value for key, value in given.items() if value not in ("", None)})
