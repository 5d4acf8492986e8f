"""The published numbers beside the predicted ones, as tables of at most 100 columns that can be pasted into a ticket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from rich.box import SIMPLE
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .published import PublishedRow
from .published_tables import Section

__all__ = ["published_table"]

_TITLES: dict[Section, str] = {
    "fp8_kv": "FP8 KV cache",
    "int4_weights": "INT4 weights",
    "reference": "For reference: what others counted and logged",
}
_DECIMALS = {"billion": 2, "million": 1, "GB": 1, "GiB": 1, "×": 2}
"""Of predictions; units that are counted one by one have none. Published numbers are shown as they were published."""

_WIDTH = 96
"""Of the lines under a table, so that they keep to its width on wide terminals too."""

_LEGEND = (
    ("derived", "from dimensions and settings alone"),
    ("fitted", "with a constant that is fitted to one of the published numbers; its value stands among the settings"),
    ("published only", "not predicted; prefill speed never is"),
    (
        "settings",
        "engine, GPU, memory fraction, KV layout and length of requests are inferred where the source is silent",
    ),
    ("units", "GB is 10^9 bytes, GiB 2^30"),
)


def published_table(rows: Sequence[PublishedRow]) -> RenderableType:
    """Tables for FP8 KV, for INT4 weights and for reference, each with its settings and notes, and a legend."""
    parts: list[RenderableType] = []
    for section, title in _TITLES.items():
        members = [row for row in rows if row.section == section]
        if members:
            parts += _section(title, members)
    return Group(*parts, _Lines(_LEGEND))


def _section(title: str, rows: Sequence[PublishedRow]) -> list[RenderableType]:
    models = list(dict.fromkeys(row.model for row in rows))
    source = Counter(row.source for row in rows).most_common(1)[0][0]
    settings = list(dict.fromkeys(row.settings for row in rows if row.settings))
    notes = list(dict.fromkeys(note for row in rows if (note := _note(row, source))))
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("")
    table.add_column("see", no_wrap=True)
    for name in ("predicted", "published"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for name in ("error", "within"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("basis", no_wrap=True)
    for row in rows:
        letter = ascii_lowercase[settings.index(row.settings)] if row.settings else " "
        note = _note(row, source)
        table.add_row(
            Text(row.what if len(models) == 1 else f"{row.model}: {row.what}"),
            f"{letter} {notes.index(note) + 1}" if note else letter,
            "–" if row.predicted is None else f"{row.predicted:,.{_DECIMALS.get(row.unit, 0)}f}",
            f"{row.published:,.10g}",
            row.unit,
            _error(row),
            "" if row.tolerance_percent is None else f"{row.tolerance_percent:g}%",
            row.basis,
        )
    head = Text(title if len(models) > 1 else f"{title}: {models[0]}", style="bold")
    lines = [*zip(ascii_lowercase, settings, strict=False), *((str(n), note) for n, note in enumerate(notes, 1))]
    return [head, table, _Lines([*lines, ("", f"from {source}, where no note says otherwise")]), Text("")]


def _note(row: PublishedRow, source: str) -> str:
    """A row's note, with its source where that is not the usual one of its table."""
    return "; ".join(part for part in (row.note, None if row.source == source else f"from {row.source}") if part)


def _error(row: PublishedRow) -> Text:
    if row.error_percent is None:
        return Text("")
    rounded = round(row.error_percent, 2)
    text = f"{rounded:+.2f}%" if rounded else "0.00%"
    return Text(text) if row.is_within else Text(f"{text} !", style="bold red")


@dataclass(frozen=True)
class _Lines:
    """A mark and what it stands for on each line; long texts go on under themselves."""

    lines: Sequence[tuple[str, str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        grid = Table(
            box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False, width=min(_WIDTH, options.max_width - 2)
        )
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, overflow="fold")
        for mark, text in self.lines:
            grid.add_row(Text(mark), Text(text))
        yield Padding(grid, (0, 0, 0, 2))
