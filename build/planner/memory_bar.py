"""The memory of a plan's GPUs as bars of plain characters, with the numbers under them, which add up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .report_parts import StageReport

__all__ = ["memory_bars"]

_WIDTH = 50
"""Characters of a bar: one stands for a fiftieth of the memory, and bars survive in a ticket."""
_STYLES = {"█": "cyan", "▒": "green", "·": "dim", "╳": "dim", "!": "bold red"}
"""The characters of weights, pool, what is left over, what was taken before, and what is missing."""


def memory_bars(memories: Sequence[tuple[str, StageReport]], *, taken_by: str) -> RenderableType:
    """One bar for each kind of GPU, and the same in GiB.

    What does not fit is drawn behind the memory's end, and is a number below zero in the table.

    Args:
        memories: what to call a GPU (nothing where there is one kind), and what is in it.
        taken_by: in a word, what holds the memory that is not free.
    """
    bars = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
    numbers = Table(box=None, padding=(0, 0, 0, 2), header_style="")
    width = max(len(name) for name, _ in memories)
    for table in (bars, numbers) if width else ():
        table.add_column(min_width=width)
    for heading in ("█ weights", "▒ KV pool", "· left over", f"╳ {taken_by}", "total"):
        numbers.add_column(heading, justify="right", no_wrap=True)
    for name, memory in memories:
        label = (Text(name),) if width else ()
        parts = (memory.weight_bytes, memory.kv_bytes, memory.left_over_bytes, memory.taken_bytes)
        hundredths = _rounded(parts, 100 / 2**30)
        bars.add_row(*label, _bar(memory))
        numbers.add_row(*label, *(f"{part / 100:,.2f}" for part in (*hundredths, sum(hundredths))))
    if all(memory.left_over_bytes >= 0 for _, memory in memories):
        return Group(bars, numbers)
    return Group(bars, numbers, Text("  ! more than there is: left over is below zero", style="bold red"))


def _bar(memory: StageReport) -> Text:
    free = memory.weight_bytes + memory.kv_bytes + memory.left_over_bytes
    weights = min(memory.weight_bytes, free)
    pool = min(memory.kv_bytes, free - weights)
    missing = max(0, -memory.left_over_bytes)
    parts = (weights, pool, free - weights - pool, memory.taken_bytes, missing)
    bar = Text()
    for character, cells in zip(_STYLES, _cells(parts), strict=True):
        bar.append(character * cells, style=_STYLES[character])
    return bar


def _cells(parts: Sequence[int]) -> list[int]:
    """Characters for each part; one at least for what is there at all."""
    cells = _rounded(parts, _WIDTH / sum(parts))
    for index, part in enumerate(parts):
        if part and not cells[index]:
            cells[cells.index(max(cells))] -= 1
            cells[index] = 1
    return cells


def _rounded(parts: Sequence[int], scale: float) -> list[int]:
    """The scaled parts as whole numbers that add up to the scaled total; each is less than one off."""
    edges = [round(edge * scale) for edge in accumulate(parts, initial=0)]
    return [after - before for before, after in pairwise(edges)]
