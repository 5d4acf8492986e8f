"""Evaluations of a home: ``<home>/evaluations/<id>``, with ``items``, ``base``, ``scores`` and ``unmeasured`` as lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from roundhouse.build.home import Home
from roundhouse.errors import ServeError

from ..history import RecordStore, RecordWriter, read_end, read_header, read_lines, state_of
from .gate import judge
from .records import Evaluation, EvaluationHeader, Item, TaskScore, Unmeasured

__all__ = ["BASE", "ITEMS", "SCORES", "UNMEASURED", "EvaluationStore", "read_evaluation", "read_items"]

ITEMS, BASE, SCORES, UNMEASURED = "items", "base", "scores", "unmeasured"
"""``base``: what the base answered, as items of its own, on disk before the subject is asked."""


class EvaluationStore:
    """All evaluations of one home."""

    def __init__(self, home: Home) -> None:
        self.records = RecordStore(home.path / "evaluations", "evaluation")

    def begin(self, header: EvaluationHeader) -> RecordWriter:
        """Begin to write one down.

        Raises:
            ServeError: it cannot be written.
        """
        return self.records.create(header.id, header)

    def __iter__(self) -> Iterator[Evaluation]:
        """Every readable evaluation, the newest first."""
        yield from self.read()[0]

    def read(self) -> tuple[list[Evaluation], list[str]]:
        """Every evaluation, the newest first, and what is wrong with each that cannot be read."""
        found, damaged = [], []
        for folder in self.records:
            try:
                found.append(read_evaluation(folder))
            except ServeError as error:
                damaged.append(error.message)
        return found, damaged

    def open(self, wanted: str) -> Evaluation:
        """An evaluation by its id, the beginning of one, or ``latest``.

        Raises:
            UsageError: none is called so, or several are.
            ServeError: it is damaged.
        """
        return read_evaluation(self.records.find(wanted))


def read_evaluation(folder: Path) -> Evaluation:
    """An evaluation as it is now, also one that goes on or was interrupted.

    Raises:
        ServeError: it is damaged, or of another version.
    """
    header = read_header(folder, EvaluationHeader)
    state, end = state_of(folder), read_end(folder)
    scores = tuple(read_lines(folder, SCORES, TaskScore))
    unmeasured = tuple(read_lines(folder, UNMEASURED, Unmeasured))
    return Evaluation(
        header=header,
        state=state,
        ended_at=None if end is None else end.at,
        problem=None if end is None else end.problem,
        scores=scores,
        unmeasured=unmeasured,
        gate=judge(scores, unmeasured, limit_points=header.gate_points, ended=state == "finished"),
    )


def read_items(folder: Path, name: str = ITEMS) -> Iterator[Item]:
    """Every item of an evaluation, in the order in which they were answered.

    Args:
        folder: of the record.
        name: ``items``, or ``base`` for the base's.

    Raises:
        ServeError: they are damaged.
    """
    yield from read_lines(folder, name, Item)
