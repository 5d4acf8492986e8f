"""By which quantities runs are compared, and how their repeats are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.statistics import QUANTITIES

from ..models import BenchmarkPoint

__all__ = ["COMPARED_BY", "USUAL", "ComparedName", "Repeats", "compared_by", "repeats_at"]

ComparedName = Literal[
    "output_tokens_per_s", "requests_per_s", "ttft_p50", "ttft_p99", "inter_token_p50", "end_to_end_p50"
]  # fmt: skip
COMPARED_BY: tuple[ComparedName, ...] = get_args(ComparedName)
USUAL: ComparedName = COMPARED_BY[0]

Repeats = Mapping[str, Mapping[int, float]]
"""By run and repeat."""

_RECORD = BenchmarkPoint.record
_READ: dict[ComparedName, tuple[Any, ...]] = {
    "output_tokens_per_s": (BenchmarkPoint.output_tokens_per_s,),
    "requests_per_s": (_RECORD["completed"], _RECORD["duration_s"]),
    "ttft_p50": (BenchmarkPoint.ttft_p50,),
    "ttft_p99": (_RECORD[("ttft", "p99")],),
    "inter_token_p50": (BenchmarkPoint.inter_token_p50,),
    "end_to_end_p50": (BenchmarkPoint.end_to_end_p50,),
}
"""The value, or two of which the first over the second is it. What has no column is in what was written down of a point."""


def compared_by() -> list[tuple[ComparedName, str]]:
    """What one can choose from, with words."""
    return [(name, QUANTITIES[name].words) for name in COMPARED_BY]


def repeats_at(session: Session, ids: Sequence[str], concurrency: int | None, quantity: ComparedName) -> Repeats:
    """What repeats of runs measured of one quantity at one concurrency: one statement. None where it was not measured."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    columns = (BenchmarkPoint.benchmark_id, BenchmarkPoint.repeat, *_READ[quantity])
    wanted = select(*columns).where(BenchmarkPoint.benchmark_id.in_(ids), BenchmarkPoint.concurrency == concurrency)
    for id_, repeat, value, *over in session.execute(wanted.order_by(BenchmarkPoint.benchmark_id, BenchmarkPoint.repeat)):
        if value is not None:
            found[id_][repeat] = value / over[0] if over else value
    return found
