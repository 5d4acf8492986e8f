"""Whether more requests fail than did."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from .records import Benchmark
from .side_by_side import shared_lengths

__all__ = ["FailureCheck", "check_failures", "judge_failures"]

_NEGLIGIBLE = 1e-17
"""A term that adds so little of the sum that no later one, which is smaller, adds anything."""


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
    """Compare shares of failed requests, at these concurrencies and at the prompt lengths that both share."""
    lengths = shared_lengths(baseline, run)
    return judge_failures(*_counted(run, concurrencies, lengths), *_counted(baseline, concurrencies, lengths), alpha=alpha)


def judge_failures(failed: int, requests: int, baseline_failed: int, baseline_requests: int, *, alpha: float) -> FailureCheck:
    """Ask whether more requests fail than did.

    Any failure is a rise where the baseline had none: a request that fails is no noise. Where it had some, a higher share is
    one when Fisher's exact test says so.

    Args:
        failed: of the run's.
        requests: of the run, that ended either way.
        baseline_failed: likewise of the baseline.
        baseline_requests: likewise of the baseline.
        alpha: how likely a false alarm may be.
    """
    p = _fisher(failed, requests, baseline_failed, baseline_requests) if requests and baseline_requests else 1.0
    return FailureCheck(
        failed=failed,
        requests=requests,
        baseline_failed=baseline_failed,
        baseline_requests=baseline_requests,
        p=p,
        risen=failed > 0 and (baseline_failed == 0 or p <= alpha),
    )


def _fisher(failed: int, requests: int, before: int, all_before: int) -> float:
    """Fisher's exact test, one-sided: the upper end of a hypergeometric distribution."""
    bad, total = failed + before, requests + all_before
    usual, seen = requests * bad / total, 0.0
    for count in range(max(failed, requests + bad - total), min(bad, requests) + 1):
        chosen = _log_choose(bad, count) + _log_choose(total - bad, requests - count)
        term = math.exp(chosen - _log_choose(total, requests))
        seen += term
        if count > usual and term <= _NEGLIGIBLE * seen:
            break
    return min(1.0, seen)


def _log_choose(all_: int, some: int) -> float:
    return math.lgamma(all_ + 1) - math.lgamma(some + 1) - math.lgamma(all_ - some + 1)


def _counted(run: Benchmark, concurrencies: Sequence[int], lengths: Sequence[int]) -> tuple[int, int]:
    """Failed requests, and those that ended either way; cancelled ones did neither."""
    points = [point for point in run.points if point.concurrency in concurrencies]
    prefill = [point for point in run.prefill if point.input_tokens in lengths]
    failed = sum(point.failures for point in points) + sum(point.failures for point in prefill)
    return failed, failed + sum(point.completed for point in points) + sum(point.requests for point in prefill)
