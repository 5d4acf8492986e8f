"""How the command line calls what a wish, its workload and its overrides hold."""

from __future__ import annotations

from ..options import OptionNames

__all__ = ["OPTIONS"]

OPTIONS = OptionNames(
    {"concurrencies": "--concurrency", "prefill_lengths": "--prefill", "request_timeout_s": "--timeout"},
)
