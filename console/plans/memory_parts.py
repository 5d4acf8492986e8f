"""What takes the memory of a GPU of a plan, as bars show it: for a plan that is made, and for the one that an engine keeps."""

from __future__ import annotations

from roundhouse.build.planner.report import PlanReport
from roundhouse.build.planner.report_parts import StageReport

__all__ = ["memory_parts"]


def memory_parts(report: PlanReport, stage: StageReport) -> tuple[tuple[str, int], ...]:
    """Kinds (``weights``, ``kv``, ``activations``, ``reserve``) and bytes; what is missing to the total is free."""
    parts = [("weights", stage.weight_bytes), ("kv", stage.kv_bytes)]
    if report.binding_limit == "memory_fraction" and stage.left_over_bytes > 0:
        parts.append(("activations", stage.left_over_bytes))  # else nobody keeps it free for them
    return (*parts, ("reserve", stage.taken_bytes))
