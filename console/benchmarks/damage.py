"""Records with something in them that cannot be read: a line, or how they ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from roundhouse.errors import ServeError
from roundhouse.serve.history import RecordAwayError, RecordState, read_end, state_of
from roundhouse.serve.history.reader import is_held

__all__ = ["Ending", "read_ending", "until_damage"]

Line = TypeVar("Line", bound=BaseModel)


@dataclass(frozen=True)
class Ending:
    """What became of a record, as far as its folder can be read."""

    state: RecordState
    at: datetime | None = None
    problem: str | None = None
    """Why it failed, in a sentence."""

    def with_faults(self, faults: Sequence[str]) -> Ending:
        """What became of it where some of it cannot be read: it has failed, because nobody knows what is missing.

        While it is being measured more may come, and it goes on.
        """
        if not faults:
            return self
        state: RecordState = self.state if self.state == "running" else "failed"
        return replace(self, state=state, problem=self.problem or faults[0])


def read_ending(folder: Path) -> Ending:
    """How a record ended, or that it goes on. Where that cannot be read it has failed, unless somebody still measures it.

    Raises:
        RecordAwayError: it cannot be read just now, which says nothing of how it ended.
    """
    try:
        state, end = state_of(folder), read_end(folder)
    except RecordAwayError:
        raise
    except ServeError as error:
        return Ending("running" if is_held(folder) else "failed", problem=error.message)
    return Ending(state) if end is None else Ending(state, end.at, end.problem)


def until_damage(lines: Iterable[Line], faults: list[str]) -> Iterator[Line]:
    """The lines before one that cannot be read; what is wrong with that is added to ``faults``.

    Raises:
        RecordAwayError: they cannot be read just now, which is no damage.
    """
    try:
        yield from lines
    except RecordAwayError:
        raise
    except ServeError as error:
        faults.append(error.message)
