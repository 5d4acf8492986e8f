"""The columns of the list of benchmark runs, of which everybody shows what they look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["COLUMNS", "PREFERENCE", "USUAL", "Column", "columns_of", "columns_text"]

PREFERENCE = "benchmarks.columns"
"""The key under which an account's choice is kept."""


@dataclass(frozen=True)
class Column:
    """A column beside the one that names the run."""

    key: str
    label: str
    sort: str | None = None
    """What the list is sorted by when its head is clicked."""
    is_number: bool = False


COLUMNS: tuple[Column, ...] = (
    Column("state", "State"),
    Column("when", "Began", sort="began"),
    Column("model", "Model", sort="model"),
    Column("weights", "Weights"),
    Column("workload", "Workload"),
    Column("hardware", "Hardware"),
    Column("host", "Host"),
    Column("driver", "Driver"),
    Column("most", "Tokens/s, most", sort="most", is_number=True),
    Column("alone", "Alone", sort="alone", is_number=True),
    Column("ttft", "First token", is_number=True),
    Column("prefill", "Prefill", sort="prefill", is_number=True),
    Column("points", "Points", is_number=True),
    Column("failed", "Failed", is_number=True),
    Column("noisy", "Noisy", is_number=True),
    Column("tags", "Tags"),
    Column("note", "Note"),
)
USUAL = ("state", "when", "weights", "workload", "hardware", "most", "alone", "ttft", "prefill")
"""As many as fit beside each other on a laptop. Tags, failed requests and noisy points are said in other cells where they
have no column.
"""


def columns_of(asked: str, kept: Any) -> tuple[Column, ...]:
    """Those that are shown, in their order.

    Args:
        asked: what the address says, with commas between them; empty where it does not.
        kept: what the account has kept; anything may be there.
    """
    for keys in (asked.split(","), kept if isinstance(kept, list) else (), USUAL):
        wanted = {key for key in keys if isinstance(key, str)}
        if shown := tuple(column for column in COLUMNS if column.key in wanted):
            return shown
    return COLUMNS


def columns_text(keys: Iterable[str]) -> str:
    """For an address: those that there are, with commas between them."""
    wanted = set(keys)
    return ",".join(column.key for column in COLUMNS if column.key in wanted)
