"""Workloads that the form offers by name: those that come with Roundhouse."""

from __future__ import annotations

from functools import lru_cache

from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.benchmark.workload_files import shipped_workloads

__all__ = ["named_workloads"]


@lru_cache
def named_workloads() -> dict[str, Workload]:
    """By name. Read once: they come with the package."""
    return shipped_workloads()
