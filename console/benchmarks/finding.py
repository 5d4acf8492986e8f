"""Runs as people call them: by an id, or by the start of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from ..models import BenchmarkRun

__all__ = ["CalledRuns", "find_called"]

_LONG = 12
"""Characters of an id."""
_MOST = 200
"""Starts that are looked up at once: as many as can be compared."""


@dataclass(frozen=True)
class CalledRuns:
    """What starts of ids stand for."""

    ids: Mapping[str, str] = field(default_factory=dict)
    """The id, of each start that only one run has."""
    ambiguous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The ids, in order, of each start that several have."""

    def id_of(self, called: str) -> str:
        """The whole id, where it is known; else as it was called."""
        return self.ids.get(called, called)


def find_called(session: Session, called: Iterable[str]) -> CalledRuns:
    """Look starts of ids up: one statement, and none where all ids are whole. What is an id itself stands for nothing else."""
    starts = set(islice((each for each in called if 0 < len(each) < _LONG), _MOST))
    if not starts:
        return CalledRuns()
    fits = or_(*(BenchmarkRun.id.startswith(each, autoescape=True) for each in sorted(starts)))
    known = select(BenchmarkRun.id).where(fits, BenchmarkRun.deleted_at.is_(None)).order_by(BenchmarkRun.id)
    there = session.scalars(known).all()
    ids: dict[str, str] = {}
    ambiguous: dict[str, tuple[str, ...]] = {}
    for each in sorted(starts - set(there)):
        fitting = tuple(id_ for id_ in there if id_.startswith(each))
        if len(fitting) == 1:
            ids[each] = fitting[0]
        elif fitting:
            ambiguous[each] = fitting
    return CalledRuns(ids, ambiguous)
