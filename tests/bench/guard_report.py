"""What the page check costs, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from guard_bare import Bare
from guard_episodes import METRICS, OFF, Episode
from guard_ratios import RESOLUTION, Interval, Ratios
from guard_share import TARGET, Share
from rich.box import SIMPLE
from rich.table import Table

from roundhouse.serve.benchmark.points import NOISY_CORES

__all__ = ["bare_table", "ratio_table", "share_table"]

_DISTURBED = "*"
_UNSURE = "?"
_DISTURBED_MEANS = f"{_DISTURBED} others kept more than {NOISY_CORES} cores busy"
_UNSURE_MEANS = f"{_UNSURE} the interval is wider than ±{RESOLUTION * 100} %"


def share_table(shares: Sequence[Share]) -> Table:
    """Milliseconds of a decode step that the check takes, by what it does, and their part of the step."""
    noisy = [each.profile.others > NOISY_CORES for each in shares]
    table = _table(
        f"The page check in a decode step, in ms (target for tags: under {TARGET * 100} %)",
        [_DISTURBED_MEANS] if any(noisy) else [],
    )
    for heading in ("at once", "level"):
        table.add_column(heading, justify="right" if heading == "at once" else "left")
    for heading in ("step", "comparing", "sealing", "tracker", "check, of the step"):
        table.add_column(heading, justify="right")
    for each, disturbed in zip(shares, noisy, strict=True):
        parts = (each.comparing_ms, each.sealing_ms, each.tracker_ms)
        table.add_row(
            _marked(each.profile.concurrency, disturbed),
            each.level,
            f"{each.profile.step_ms:.1f}",
            *(f"{ms:.3f}" for ms in parts),
            f"{each.of_step:.2%}",
        )
    return table


def ratio_table(episodes: Sequence[Episode], found: Sequence[Ratios]) -> Table:
    """With the check off, and each level over that; by concurrency."""
    unsure = any(not each.resolved for one in found for each in one.by_metric.values())
    disturbed = any(each.cell.noisy for each in episodes)
    notes = [f"{_DISTURBED_MEANS} in at least one round"] * disturbed + [_UNSURE_MEANS] * unsure
    table = _table("The page check off, and on ÷ off: medians of rounds, 95 % intervals", notes)
    table.leading = 1
    table.add_column("at once", justify="right")
    table.add_column("level")
    for metric in METRICS:
        table.add_column(metric, justify="right", no_wrap=True)
    for concurrency in dict.fromkeys(each.concurrency for each in found):
        own = [each for each in episodes if (each.cell.system, each.cell.concurrency) == (OFF, concurrency)]
        middles = (median(each.metrics[metric] for each in own) for metric in METRICS)
        table.add_row(_marked(concurrency, any(each.cell.noisy for each in own)), OFF, *(f"{value:.2f}" for value in middles))
        for each in found:
            if each.concurrency == concurrency:
                cells = (_cell(each.by_metric[metric]) for metric in METRICS)
                table.add_row(_marked(concurrency, bool(each.disturbed)), f"{each.level} ÷ {OFF}", *cells)
    return table


def bare_table(results: Iterable[Bare]) -> Table:
    """Microseconds of one comparison."""
    table = _table("The bare check, called from Python: µs", [])
    for heading in ("requests", "pages of each"):
        table.add_column(heading, justify="right")
    table.add_column("guard")
    for heading in ("threads", "median", "least"):
        table.add_column(heading, justify="right")
    for each in results:
        numbers = (f"{each.median_us:.1f}", f"{each.least_us:.1f}")
        table.add_row(str(each.rows), f"{each.columns:,}", each.guard, str(each.threads), *numbers)
    return table


def _table(title: str, notes: list[str]) -> Table:
    return Table(
        box=SIMPLE, title=title, title_justify="left", caption="\n".join(notes) if notes else None, caption_justify="left"
    )


def _marked(concurrency: int, disturbed: bool) -> str:
    return f"{concurrency}{_DISTURBED if disturbed else ''}"


def _cell(each: Interval) -> str:
    mark = " " if each.resolved else _UNSURE
    return f"{each.median:.4f}{mark}\n{each.low:.4f}–{each.high:.4f} "
