"""Why a plan is refused, and what would be legal instead. Alternatives are proved: each was planned before it is offered,
and is built by this version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Alternative", "Problem", "proved", "set_to"]

_SHOWN = 4
"""Alternatives that are offered at most: the nearest."""


class Alternative(BaseModel):
    """Recipe keys that, changed like this, make a problem go away."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    changes: dict[str, Any]
    unquantized: bool = False
    """Whether it is for an unquantized copy of an input that is quantized."""
    given: bool = False
    """Whether such weights are not made here, but taken from a checkpoint that has them."""


class Problem(BaseModel):
    """One reason why a plan is refused, and what would be legal instead, nearest first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    where: str
    message: str
    alternatives: tuple[Alternative, ...] = Field(default=())

    @property
    def legal_alternatives(self) -> tuple[str, ...]:
        """The alternatives in words."""
        return tuple(alternative.text for alternative in self.alternatives)


def set_to(key: str, values: Iterable[Any], *, name_key: bool = False) -> tuple[Alternative, ...]:
    """One alternative for each value of a recipe key."""
    return tuple(Alternative(text=f"{key} {value}" if name_key else str(value), changes={key: value}) for value in values)


def proved(problems: list[Problem], codes_with: Callable[[Alternative], set[str]]) -> list[Problem]:
    """Keep the nearest alternatives that solve their problem and make no new one.

    Args:
        problems: with everything that might be an alternative.
        codes_with: the codes of all problems that are left when an alternative is taken.
    """
    known = {problem.code for problem in problems}
    left: dict[str, set[str]] = {}  # problems often have the same alternatives
    found = []
    for problem in problems:
        kept: list[Alternative] = []
        for alternative in problem.alternatives:
            if len(kept) == _SHOWN:
                break
            same = alternative.model_dump_json()
            if same not in left:
                left[same] = codes_with(alternative)
            if left[same] <= known - {problem.code}:
                kept.append(alternative)
        found.append(problem.model_copy(update={"alternatives": tuple(kept)}))
    return found
