"""An evaluation as its folder has it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from roundhouse.serve.accuracy.gate import judge
from roundhouse.serve.accuracy.records import Evaluation, EvaluationHeader, TaskScore, Unmeasured
from roundhouse.serve.accuracy.store import BASE, ITEMS, SCORES, UNMEASURED
from roundhouse.serve.history import read_header, read_lines, require_there
from roundhouse.serve.history.raw import MOST_FILE_BYTES

from ..benchmarks.damage import read_ending, until_damage
from ..benchmarks.files import KeptFile, raw_files

__all__ = ["evaluation_files", "read_content"]

_LINES = (ITEMS, BASE, UNMEASURED)


def read_content(folder: Path) -> Evaluation:
    """An evaluation as it is now. Of a damaged one, what stands before the damage; it has failed, and that is why.

    Raises:
        RecordAwayError: it cannot be read just now.
        ServeError: its header is damaged.
    """
    header = read_header(folder, EvaluationHeader)
    ending = read_ending(folder)  # first: what was written before it ended is read after
    faults: list[str] = []
    scores = tuple(until_damage(read_lines(folder, SCORES, TaskScore), faults))
    unmeasured = tuple(until_damage(read_lines(folder, UNMEASURED, Unmeasured), faults))
    require_there(folder)  # else parts may be missing that a home has which is away
    ending = ending.with_faults(faults)
    return Evaluation(
        header=header,
        state=ending.state,
        ended_at=ending.at,
        problem=ending.problem,
        scores=scores,
        unmeasured=unmeasured,
        gate=judge(scores, unmeasured, limit_points=header.gate_points, ended=ending.state == "finished"),
    )


def evaluation_files(folder: Path) -> Iterator[KeptFile]:
    """What can be downloaded of it: every item with its answer, and raw files."""
    for name in _LINES:
        path = folder / f"{name}.jsonl"
        if path.is_file() and not path.is_symlink():
            content = gzip.compress(path.read_bytes(), 6)
            if len(content) <= MOST_FILE_BYTES:
                yield path.name, content
    yield from raw_files(folder)
