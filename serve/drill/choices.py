"""What a drill plays, as people choose it: levels and kinds of faults by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from roundhouse.build.recipe import GUARD_SAMPLE, Guard
from roundhouse.errors import UsageError

from .kinds import KINDS, FaultName
from .levels import Level

__all__ = ["kinds_of", "levels_of"]

_DEFAULT_LEVELS = ("tags", "tags+content")


def levels_of(guards: Sequence[str] | None, share: float | None) -> list[Level]:
    """The levels that a drill is played at.

    Args:
        guards: these; None: all at which something is checked.
        share: of full pages whose content is compared before a step; None: all of them, and where ``guards`` is None once
            more as few as engines compare by default.

    Raises:
        UsageError: an unknown level, or a share that goes with none of them.
    """
    known: tuple[Guard, ...] = get_args(Guard)
    for each in guards or ():
        if each not in known:
            raise UsageError(f"--guard {each}: there is {', '.join(known)}")
    if share is not None and guards and "tags+content" not in guards:
        raise UsageError("--guard-sample belongs to --guard tags+content")
    if share == 0:
        raise UsageError("--guard-sample 0 would compare no page", hint="Give a share above 0, or --guard tags.")
    levels = [Level(each, 1.0 if share is None else share) for each in known if each in (guards or _DEFAULT_LEVELS)]
    if guards is None and share is None:
        levels.append(Level("tags+content", GUARD_SAMPLE))
    return levels


def kinds_of(faults: Sequence[str] | None) -> list[FaultName | None]:
    """The kinds of faults that are put in, and None for none at all: these, or every one.

    Raises:
        UsageError: an unknown one.
    """
    wanted = faults or ["none", *KINDS]
    for name in wanted:
        if name not in ("none", *KINDS):
            raise UsageError(f"--fault {name} is unknown; one of none, {', '.join(KINDS)}")
    return [kind for kind in (None, *KINDS) if (kind or "none") in wanted]
