"""Ratios of runs over a base: of pairs where both took turns, else of repeats as they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.statistics import Ratio, paired_ratio_intervals, ratio_intervals

from ..models import BenchmarkRun
from .compare_quantities import Repeats

__all__ = ["ratios_over", "runs_in_turns"]

_NOTHING: Mapping[int, float] = {}


def runs_in_turns(session: Session, base: str, ids: Sequence[str]) -> frozenset[str]:
    """Those that took turns with the base: one statement."""
    turns = BenchmarkRun.header["session"].as_string()
    of_base = select(turns).where(BenchmarkRun.id == base).scalar_subquery()
    return frozenset(session.scalars(select(BenchmarkRun.id).where(BenchmarkRun.id.in_(ids), turns == of_base)))


def ratios_over(base: str, ids: Sequence[str], repeats: Repeats, in_turns: Collection[str]) -> dict[str, Ratio]:
    """Of each run but the base, by id.

    Args:
        base: id of what the others are compared with.
        ids: of all runs.
        repeats: what they measured.
        in_turns: which of them took turns with the base.
    """
    of_base = repeats.get(base, _NOTHING)
    others = [id_ for id_ in ids if id_ != base]
    turned, alone = ([id_ for id_ in others if (id_ in in_turns) == paired] for paired in (True, False))
    pairs = []
    for id_ in turned:
        of_run = repeats.get(id_, _NOTHING)
        both = sorted(of_base.keys() & of_run.keys())
        pairs.append(([of_base[number] for number in both], [of_run[number] for number in both]))
    unpaired = ratio_intervals(list(of_base.values()), [list(repeats.get(id_, _NOTHING).values()) for id_ in alone])
    return dict(zip([*turned, *alone], [*paired_ratio_intervals(pairs), *unpaired], strict=True))
