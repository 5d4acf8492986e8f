"""The address of a comparison: which runs, which of them is the base, by what and at which concurrency."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from roundhouse.errors import UsageError

from ..errors import FieldError
from .compare_quantities import COMPARED_BY, USUAL, ComparedName
from .records import MOST_CHOSEN

__all__ = ["CompareAsked", "runs_called"]

_LONGEST_ID = 64


@dataclass(frozen=True)
class CompareAsked:
    """What somebody wants to see side by side. The last of several bases holds, so that a button can say another one."""

    ids: tuple[str, ...] = ()
    """In the order in which they are shown, each once."""
    base: str | None = None
    """None: the first of them."""
    at: int | None = None
    """The concurrency at which ratios are taken; None chooses one."""
    by: ComparedName = USUAL
    """The quantity of which ratios are taken."""
    show_all: bool = False
    """Whether what is equal everywhere is shown, too."""

    @classmethod
    def read(cls, pairs: Iterable[tuple[str, str]], id_of: Callable[[str], str] = str) -> CompareAsked:
        """Read an address.

        Args:
            pairs: what it says, in its order.
            id_of: the whole id of a run, from what it is called there.

        Raises:
            UsageError: too many runs.
            FieldError: ``at`` is no concurrency, or ``by`` no quantity.
        """
        asked, without = cls(), set[str]()
        ids: list[str] = []
        for key, value in pairs:
            text = value.strip()
            if key == "run":
                ids += [id_of(each) for each in _calls(text)]
            elif key == "without":
                without |= {id_of(each) for each in _calls(text)}
            elif key == "base":
                asked = replace(asked, base=next((id_of(each) for each in _calls(text)), None))
            elif key == "at":
                asked = replace(asked, at=_concurrency(text))
            elif key == "by":
                asked = replace(asked, by=_quantity(text))
            elif key == "all":
                asked = replace(asked, show_all=text == "1")
        kept = tuple(dict.fromkeys(each for each in ids if each not in without))
        if len(kept) > MOST_CHOSEN:
            raise UsageError(
                f"{len(kept):,} runs are too many to compare at once", hint=f"Choose at most {MOST_CHOSEN} of them."
            )
        base = asked.base if asked.base in kept and asked.base != kept[0] else None
        return replace(asked, ids=kept, base=base)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """What the address says, in its order; nothing that is as usual."""
        said: list[tuple[str, str]] = [("run", each) for each in self.ids]
        said += [("base", self.base)] if self.base else []
        said += [("at", str(self.at))] if self.at is not None else []
        said += [("by", self.by)] if self.by != USUAL else []
        said += [("all", "1")] if self.show_all else []
        return said

    def url(self, **changes: object) -> str:
        """The address with something changed."""
        query = urlencode(replace(self, **changes).pairs)  # type: ignore[arg-type]  # names of fields
        return f"/benchmarks/compare?{query}" if query else "/benchmarks/compare"


def runs_called(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Whatever an address calls runs by."""
    return [each for key, value in pairs if key in ("run", "base", "without") for each in _calls(value)]


def _calls(text: str) -> list[str]:
    return [each[:_LONGEST_ID] for each in text.replace(",", " ").split()]


def _concurrency(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 7 and int(text)):
        raise FieldError("at", "a concurrency is a whole number above 0")
    return int(text)


def _quantity(text: str) -> ComparedName:
    for name in COMPARED_BY:
        if text in ("", name):
            return name
    raise FieldError("by", "runs are not compared by this", hint=f"By one of {', '.join(COMPARED_BY)}.")
