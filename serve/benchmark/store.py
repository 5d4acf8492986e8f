"""Benchmark runs of a home: ``<home>/benchmarks/<id>``, with ``points``, ``prefill`` and ``samples`` as lines."""

from __future__ import annotations

from pathlib import Path

from roundhouse.build.home import Home

from ..history import HomeStore, RecordWriter, read_header, read_lines, read_outcome, require_there
from .points import Point, PrefillPoint
from .records import Benchmark, BenchmarkHeader

__all__ = ["POINTS", "PREFILL", "SAMPLES", "BenchmarkStore", "read_benchmark"]

POINTS, PREFILL, SAMPLES = "points", "prefill", "samples"


class BenchmarkStore(HomeStore[Benchmark]):
    """All benchmark runs of one home."""

    def __init__(self, home: Home) -> None:
        super().__init__(home, "benchmarks", "benchmark run", read_benchmark)

    def begin(self, header: BenchmarkHeader) -> RecordWriter:
        """Begin to write one down.

        Raises:
            ServeError: it cannot be written.
        """
        return self.records.create(header.id, header)


def read_benchmark(folder: Path) -> Benchmark:
    """A run as it is now, also one that goes on or was interrupted.

    Raises:
        ServeError: it is damaged, or of another version.
    """
    header, outcome = read_header(folder, BenchmarkHeader), read_outcome(folder)
    run = Benchmark(
        header=header,
        state=outcome.state,
        ended_at=outcome.ended_at,
        problem=outcome.problem,
        points=tuple(read_lines(folder, POINTS, Point)),
        prefill=tuple(read_lines(folder, PREFILL, PrefillPoint)),
    )
    require_there(folder)
    return run
