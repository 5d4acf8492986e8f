"""Evaluations of a home: ``<home>/evaluations/<id>``, with ``items``, ``base``, ``scores`` and ``unmeasured`` as lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from roundhouse.build.home import Home

from ..history import HomeStore, RecordWriter, read_header, read_lines, read_outcome, require_there
from .gate import judge
from .records import Evaluation, EvaluationHeader, Item, TaskScore, Unmeasured

__all__ = ["BASE", "ITEMS", "SCORES", "UNMEASURED", "EvaluationStore", "read_evaluation", "read_items"]

ITEMS, BASE, SCORES, UNMEASURED = "items", "base", "scores", "unmeasured"
"""``base``: what the base answered, as items of its own, on disk before the subject is asked."""


class EvaluationStore(HomeStore[Evaluation]):
    """All evaluations of one home."""

    def __init__(self, home: Home) -> None:
        super().__init__(home, "evaluations", "evaluation", read_evaluation)

    def begin(self, header: EvaluationHeader) -> RecordWriter:
        """Begin to write one down.

        Raises:
            ServeError: it cannot be written.
        """
        return self.records.create(header.id, header)


def read_evaluation(folder: Path) -> Evaluation:
    """An evaluation as it is now, also one that goes on or was interrupted.

    Raises:
        ServeError: it is damaged, or of another version.
    """
    header, outcome = read_header(folder, EvaluationHeader), read_outcome(folder)
    scores = tuple(read_lines(folder, SCORES, TaskScore))
    unmeasured = tuple(read_lines(folder, UNMEASURED, Unmeasured))
    require_there(folder)
    return Evaluation(
        header=header,
        state=outcome.state,
        ended_at=outcome.ended_at,
        problem=outcome.problem,
        scores=scores,
        unmeasured=unmeasured,
        gate=judge(scores, unmeasured, limit_points=header.gate_points, ended=outcome.state == "finished"),
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
