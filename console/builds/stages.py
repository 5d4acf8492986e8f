"""A job's stages as a line of time: what was done, what is under way, and what a build will still do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..database.base import utc_now
from ..jobs.records import JobDetail, StageRow

__all__ = ["BUILD_STAGES", "ShownStage", "shown_stages"]

BUILD_STAGES = {
    "plan": "bytes, pages and legality",
    "load": "the base, and its logits on held-out text",
    "calibrate": "searching scales",
    "quantize": "packing weights and writing the checkpoint",
    "verify": "every tensor against the base",
    "measure": "the engine's logits against the base's",
    "compile": "for its target",
    "publish": "hashing files and moving the engine to its place",
}
"""What a build does, in its order, in words that hold for every build."""
_TELLING = 0.05
"""The part of a stage that has to be done before its end is guessed at."""
_HOW = {"failed": "failed", "cancelled": "cancelled", "interrupted": "interrupted"}


@dataclass(frozen=True)
class ShownStage:
    """A stage as the stage line draws it."""

    name: str
    state: str
    what: str
    begins: float | None
    """Seconds after the first stage began."""
    seconds: float | None
    done: float | None
    left: float | None
    """Seconds that it will probably still take."""


def shown_stages(job: JobDetail, now: datetime | None = None) -> list[ShownStage]:
    """The stages of a job's latest attempt; of a build that goes on, also those to come."""
    moment = now or utc_now()
    rows = job.stages
    shown = [_shown(job, row, rows[0].began_at, moment, is_last=row is rows[-1]) for row in rows]
    if job.kind == "build" and job.is_live:
        shown += _to_come(rows)
    return shown


def _shown(job: JobDetail, row: StageRow, start: datetime, now: datetime, *, is_last: bool) -> ShownStage:
    running = job.state == "running" and row.ended_at is None
    state = "running" if running else _HOW.get(job.state, "done") if is_last else "done"
    seconds = ((row.ended_at or now) - row.began_at).total_seconds()
    telling = running and row.done is not None and _TELLING <= row.done < 1
    left = seconds * (1 - row.done) / row.done if telling and row.done else None
    what = row.result or row.what
    return ShownStage(row.name, state, what, (row.began_at - start).total_seconds(), max(0.0, seconds), row.done, left)


def _to_come(rows: Sequence[StageRow]) -> list[ShownStage]:
    names = list(BUILD_STAGES)
    known = [names.index(row.name) for row in rows if row.name in BUILD_STAGES]
    rest = names[max(known) + 1 :] if known else names
    return [ShownStage(name, "waiting", BUILD_STAGES[name], None, None, None, None) for name in rest]
