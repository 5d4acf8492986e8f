"""The two kinds of records that a worker looks after: benchmark runs and evaluations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from roundhouse.build.home import Home

from ..benchmarks import deleting as benchmarks_deleting
from ..benchmarks import recording as benchmarks_recording
from ..evaluations import deleting as evaluations_deleting
from ..evaluations import recording as evaluations_recording
from ..models import BenchmarkRun, EvaluationRun

__all__ = ["RECORD_KINDS", "RecordKind"]


@dataclass(frozen=True)
class RecordKind:
    """How records of one kind are found and written down."""

    folder: str
    """Below the home."""
    what: str
    """One of them, in words."""
    table: type[BenchmarkRun] | type[EvaluationRun]
    record: Callable[[Session, Path, str, Home], None]
    """Makes the database agree with a folder of a home on a host."""
    forget: Callable[[Session, str], None]
    """Deletes all that is known of one whose folder is gone."""


RECORD_KINDS = (
    RecordKind("benchmarks", "benchmark run", BenchmarkRun, benchmarks_recording.record_folder, benchmarks_deleting.forget_run),
    RecordKind(
        "evaluations", "evaluation", EvaluationRun, evaluations_recording.record_folder, evaluations_deleting.forget_evaluation
    ),
)
