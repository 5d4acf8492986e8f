"""Prefill speeds side by side: prompt tokens a second by prompt length, over the base's."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from statistics import median

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..models import BenchmarkPrefill
from .compare_ratios import ratios_over
from .compare_records import PrefillBeside, PrefillCompared

__all__ = ["MOST_LENGTHS", "compare_prefill"]

MOST_LENGTHS = 8
"""Prompt lengths that are compared: each is a column, and an interval for every run."""


def compare_prefill(session: Session, base: str, ids: Sequence[str], in_turns: Collection[str]) -> PrefillCompared:
    """Compare, in one statement. Of many lengths those that most runs have measured, the base among them.

    Args:
        session: where to read.
        base: id of what the others are compared with.
        ids: of all runs.
        in_turns: which of them took turns with the base.
    """
    at = _repeats(session, ids)
    counted = Counter({length: len(runs) for length, runs in at.items()})
    first = sorted(counted, key=lambda length: (base not in at[length], -counted[length], length))
    shown = sorted(first[:MOST_LENGTHS])
    found: dict[str, dict[int, PrefillBeside]] = defaultdict(dict)
    for length in shown:
        ratios = ratios_over(base, [id_ for id_ in ids if id_ in at[length]], at[length], in_turns)
        for id_, repeats in at[length].items():
            speeds = list(repeats.values())
            found[id_][length] = PrefillBeside(median(speeds), len(speeds), ratios.get(id_))
    return PrefillCompared(tuple(shown), len(counted) - len(shown), found)


def _repeats(session: Session, ids: Sequence[str]) -> dict[int, dict[str, dict[int, float]]]:
    """Prompt tokens a second by prompt length, run and repeat; prompts that nobody answered have none."""
    found: dict[int, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    columns = (
        BenchmarkPrefill.benchmark_id,
        BenchmarkPrefill.input_tokens,
        BenchmarkPrefill.repeat,
        BenchmarkPrefill.tokens_per_s,
    )
    wanted = select(*columns).where(BenchmarkPrefill.benchmark_id.in_(ids), BenchmarkPrefill.tokens_per_s > 0)
    for id_, length, repeat, speed in session.execute(wanted.order_by(*columns[:3])):
        found[length][id_][repeat] = speed
    return found
