"""Which kinds of jobs a worker does side by side: it has a lane for each group, and does one job of a lane at a time."""

from __future__ import annotations

from ..models import JobKind

__all__ = ["LANES", "lane_of"]

LANES: dict[str, tuple[JobKind, ...]] = {
    "engines": ("build", "verify", "remove", "drill", "benchmark", "evaluate"),
    "deploys": ("deploy",),
    "unloads": ("undeploy",),
}
"""Somebody who deploys does not wait for a build, and somebody who unloads for neither.

Speed is measured in the lane of builds: one that ran beside a benchmark would take the processor from what is measured.
"""


def lane_of(kind: str) -> tuple[JobKind, ...]:
    """The kinds that are done in one lane with this one."""
    return next(kinds for kinds in LANES.values() if kind in kinds)
