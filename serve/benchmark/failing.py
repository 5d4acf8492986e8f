"""Whether more requests fail than did."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from .records import Benchmark
from .side_by_side import shared_lengths

__all__ = ["FailureCheck", "check_failures"]


class FailureCheck(BaseModel):
    """Failed requests of both runs, over the concurrencies and the prompt lengths of prefill that they share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    failed: int
    requests: int
    baseline_failed: int
    baseline_requests: int
    p: float
    """Of a share as high as the run's if there were no difference (Fisher's exact test, one-sided)."""
    risen: bool

    @property
    def words(self) -> str:
        """In a sentence."""
        return (
            f"{self.failed:,} of {self.requests:,} requests failed, in the baseline {self.baseline_failed:,} of "
            f"{self.baseline_requests:,}"
        )


def check_failures(run: Benchmark, baseline: Benchmark, concurrencies: Sequence[int], alpha: float) -> FailureCheck:
    """Compare shares of failed requests.

    Any failure is a rise where the baseline had none: a request that fails is no noise. Where it had some, a higher share is
    one when Fisher's exact test says so.
    """
    from scipy.stats import fisher_exact

    lengths = shared_lengths(baseline, run)
    failed, requests = _counted(run, concurrencies, lengths)
    before, all_before = _counted(baseline, concurrencies, lengths)
    table = [[failed, requests - failed], [before, all_before - before]]
    p = float(fisher_exact(table, alternative="greater").pvalue) if requests and all_before else 1.0
    return FailureCheck(
        failed=failed,
        requests=requests,
        baseline_failed=before,
        baseline_requests=all_before,
        p=p,
        risen=failed > 0 and (before == 0 or p <= alpha),
    )


def _counted(run: Benchmark, concurrencies: Sequence[int], lengths: Sequence[int]) -> tuple[int, int]:
    """Failed requests, and those that ended either way; cancelled ones did neither."""
    points = [point for point in run.points if point.concurrency in concurrencies]
    prefill = [point for point in run.prefill if point.input_tokens in lengths]
    failed = sum(point.failures for point in points) + sum(point.failures for point in prefill)
    return failed, failed + sum(point.completed for point in points) + sum(point.requests for point in prefill)
