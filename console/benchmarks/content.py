"""A run as it is about to be written down: read from its folder, or from a file that somebody sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from roundhouse.serve.benchmark.points import LiveSample, Point, PrefillPoint
from roundhouse.serve.benchmark.records import BenchmarkHeader
from roundhouse.serve.benchmark.store import POINTS, PREFILL, SAMPLES
from roundhouse.serve.history import RecordState, read_header, read_lines, require_there

from .damage import read_ending, until_damage
from .files import KeptFile, raw_files

__all__ = ["BenchmarkContent", "read_content"]


@dataclass(frozen=True)
class BenchmarkContent:
    """All that is known of a run."""

    header: BenchmarkHeader
    state: RecordState
    ended_at: datetime | None = None
    problem: str | None = None
    points: tuple[Point, ...] = ()
    """All of them."""
    prefill: tuple[PrefillPoint, ...] = ()
    """All of them."""
    samples: tuple[LiveSample, ...] = ()
    first_sample: int = 0
    """The number of the first of these: those before are known."""
    files: Iterable[KeptFile] = field(default=())
    """Read while they are written down."""


def read_content(folder: Path, *, known_samples: int = 0) -> BenchmarkContent:
    """A run as its folder has it now. Of a damaged one, what stands before the damage; it has failed, and that is why.

    Args:
        folder: of the run.
        known_samples: live samples that need not be read again.

    Raises:
        RecordAwayError: it cannot be read just now.
        ServeError: its header is damaged.
    """
    header = read_header(folder, BenchmarkHeader)
    ending = read_ending(folder)  # first: what was written before it ended is read after
    faults: list[str] = []
    points = tuple(until_damage(read_lines(folder, POINTS, Point), faults))
    prefill = tuple(until_damage(read_lines(folder, PREFILL, PrefillPoint), faults))
    samples = tuple(until_damage(read_lines(folder, SAMPLES, LiveSample, skip=known_samples), faults))
    require_there(folder)  # else parts may be missing that a home has which is away
    ending = ending.with_faults(faults)
    return BenchmarkContent(
        header=header,
        state=ending.state,
        ended_at=ending.at,
        problem=ending.problem,
        points=points,
        prefill=prefill,
        samples=samples,
        first_sample=known_samples,
        files=raw_files(folder) if ending.state != "running" else (),
    )
