"""Jobs in words."""

from __future__ import annotations

from typing import get_args

from ..jobs.records import JobRow
from ..models import JobKind, JobState

__all__ = ["KINDS", "KIND_NAMES", "STATES", "job_title"]

KINDS: tuple[JobKind, ...] = get_args(JobKind)
STATES: tuple[JobState, ...] = get_args(JobState)
KIND_NAMES: dict[JobKind, str] = {
    "build": "builds",
    "verify": "verifications",
    "remove": "removals",
    "deploy": "deployments",
    "undeploy": "ends of deployments",
    "drill": "drills",
    "benchmark": "benchmarks",
    "evaluate": "evaluations",
}
_TITLES: dict[JobKind, str] = {
    "build": "Build {}",
    "verify": "Verify {}",
    "remove": "Remove {}",
    "deploy": "Deploy {}",
    "undeploy": "Stop {}",
    "drill": "Drill on {}",
    "benchmark": "Benchmark {}",
    "evaluate": "Evaluate {}",
}


def job_title(job: JobRow) -> str:
    """What a job is, and of what."""
    return _TITLES[job.kind].format(job.subject)
