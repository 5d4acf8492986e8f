"""Benchmark runs of a home: ``<home>/benchmarks/<id>``, with ``points``, ``prefill`` and ``samples`` as lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from roundhouse.build.home import Home
from roundhouse.errors import ServeError

from ..history import RecordStore, RecordWriter, read_end, read_header, read_lines, state_of
from .points import Point, PrefillPoint
from .records import Benchmark, BenchmarkHeader

__all__ = ["POINTS", "PREFILL", "SAMPLES", "BenchmarkStore", "read_benchmark"]

POINTS, PREFILL, SAMPLES = "points", "prefill", "samples"


class BenchmarkStore:
    """All benchmark runs of one home."""

    def __init__(self, home: Home) -> None:
        self.records = RecordStore(home.path / "benchmarks", "benchmark run")

    def begin(self, header: BenchmarkHeader) -> RecordWriter:
        """Begin to write one down.

        Raises:
            ServeError: it cannot be written.
        """
        return self.records.create(header.id, header)

    def __iter__(self) -> Iterator[Benchmark]:
        """Every readable run, the newest first."""
        for folder in self.records:
            try:
                yield read_benchmark(folder)
            except ServeError:
                continue

    def open(self, wanted: str) -> Benchmark:
        """A run by its id, the beginning of one, or ``latest``.

        Raises:
            UsageError: none is called so, or several are.
            ServeError: it is damaged.
        """
        return read_benchmark(self.records.find(wanted))


def read_benchmark(folder: Path) -> Benchmark:
    """A run as it is now, also one that goes on or was interrupted.

    Raises:
        ServeError: it is damaged, or of another version.
    """
    header = read_header(folder, BenchmarkHeader)
    state, end = state_of(folder), read_end(folder)
    run = Benchmark(
        header=header,
        state=state,
        ended_at=None if end is None else end.at,
        problem=None if end is None else end.problem,
        points=tuple(read_lines(folder, POINTS, Point)),
        prefill=tuple(read_lines(folder, PREFILL, PrefillPoint)),
    )
    if not folder.exists():  # then parts of it may be missing above
        raise ServeError(f"{folder} was removed meanwhile")
    return run
