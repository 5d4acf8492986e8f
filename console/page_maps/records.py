"""What is shown of a pool's pages."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from roundhouse.serve.page_map import PageState

__all__ = ["Holders", "Holding", "PageRange", "PagesRow", "PoolPages"]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True)


class Holding(_Told):
    """A request that holds pages."""

    request_id: str
    """The engine's own, as integrity events name it."""
    client_id: str = ""
    """The beginning of the one that its client gave; empty where it gave none."""

    @property
    def text(self) -> str:
        """For a sentence."""
        return f"request {self.request_id[:8]}" + (f" ({self.client_id})" if self.client_id else "")


class Holders(_Told):
    """Who holds some pages together."""

    requests: tuple[Holding, ...] = ()
    """The first few of them."""
    more: int = 0
    """Requests beside those."""
    prefix_cache: bool = False
    """Whether the prefix cache does, too."""

    @property
    def text(self) -> str:
        """For a sentence; empty where nobody is known."""
        named = [each.text for each in self.requests]
        if self.more:
            named.append(f"{self.more:,} more")
        if self.prefix_cache:
            named.append("the prefix cache")
        return " and ".join(filter(None, (", ".join(named[:-1]), *named[-1:])))


class PageRange(_Told):
    """Pages that follow one another, with tags that do."""

    first: int
    last: int
    tag: int
    """Of the first; 0: they carry none."""

    @property
    def text(self) -> str:
        """``12–15``, or ``12``."""
        return f"{self.first:,}" if self.first == self.last else f"{self.first:,}–{self.last:,}"

    @property
    def tags(self) -> str:
        """``118–121``; empty where there are none."""
        last = self.tag + self.last - self.first
        return "" if not self.tag else f"{self.tag}" if last == self.tag else f"{self.tag}–{last}"


class PagesRow(_Told):
    """Pages in the same state and hands."""

    state: PageState
    held_by: Holders
    pages: int
    ranges: tuple[PageRange, ...]
    """The first of them."""
    more_ranges: int


class PoolPages(_Told):
    """Who holds the pages of a deployment's pool."""

    deployment_id: str
    at: datetime | None
    """None: nothing is known."""
    asked: bool
    """Whether its engine said it just now; otherwise these are the counts of its latest sample, which know no holders."""
    problem: str | None = None
    """Why it could not be asked."""
    hint: str | None = None
    pages: int
    counts: dict[PageState, int]
    """Pages by state. By a sample's counts, pages that requests share count as used."""
    rows: tuple[PagesRow, ...] = ()
    """By state and holders, the most pages of each state first."""
    more_rows: int = 0
