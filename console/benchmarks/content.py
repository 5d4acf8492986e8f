"""A run as it is about to be written down: read from its folder, or from a file that somebody sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from roundhouse.errors import ServeError
from roundhouse.serve.benchmark.points import LiveSample, Point, PrefillPoint
from roundhouse.serve.benchmark.records import BenchmarkHeader
from roundhouse.serve.benchmark.store import POINTS, PREFILL, SAMPLES
from roundhouse.serve.history import RecordState, read_end, read_header, read_lines, state_of

from .files import KeptFile, raw_files

__all__ = ["BenchmarkContent", "read_content"]

Line = TypeVar("Line", bound=BaseModel)


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
    """A run as its folder has it now. Of a damaged one, what stands before the damage, and what is wrong.

    Args:
        folder: of the run.
        known_samples: live samples that need not be read again.

    Raises:
        ServeError: its header cannot be read.
    """
    header = read_header(folder, BenchmarkHeader)
    state = state_of(folder)  # first: what was written before it ended is read after
    end = read_end(folder)
    faults: list[str] = []
    points = tuple(_until_damage(read_lines(folder, POINTS, Point), faults))
    prefill = tuple(_until_damage(read_lines(folder, PREFILL, PrefillPoint), faults))
    samples = tuple(_until_damage(read_lines(folder, SAMPLES, LiveSample, skip=known_samples), faults))
    return BenchmarkContent(
        header=header,
        state=state,
        ended_at=end.at if end is not None else None,
        problem=(end.problem if end is not None else None) or next(iter(faults), None),
        points=points,
        prefill=prefill,
        samples=samples,
        first_sample=known_samples,
        files=raw_files(folder) if state != "running" else (),
    )


def _until_damage(lines: Iterable[Line], faults: list[str]) -> Iterator[Line]:
    try:
        yield from lines
    except ServeError as error:
        faults.append(error.message)
