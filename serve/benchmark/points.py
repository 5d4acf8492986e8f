"""What is measured: a point (one concurrency in one repeat), a prefill point (one prompt length in one repeat), a live sample.

Times are seconds, sizes bytes, dates UTC. Whatever measured it, the definitions are the same: requests that failed or were
cancelled are counted apart and are in no latency, and tokens are the server's own count where it gives one.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..history.moments import Moment
from ..history.record import Record

__all__ = [
    "NOISY_CORES",
    "EngineCounts",
    "GpuUse",
    "LiveSample",
    "Percentiles",
    "Point",
    "PrefillPoint",
    "TokensFrom",
]

NOISY_CORES = 0.2
"""When other processes keep more than this busy, a point says little about what was measured."""
TokensFrom = Literal["usage", "engine", "client"]
"""Who counted tokens: the server's usage, the engine itself, or the client with a tokenizer of its own."""

_SHORTEST_S, _LONGEST_S = 1e-6, 366 * 86_400
"""What took no time has no speed, and nobody measures for more than a year."""
_Few = Annotated[int, Field(ge=0, lt=2**31)]
"""Things that are counted one by one."""
_Many = Annotated[int, Field(ge=0, lt=2**53)]
"""Tokens, bytes and the like. Files come from elsewhere, and not every reader of JSON knows larger numbers."""


class Percentiles(Record):
    """A latency in seconds over completed requests, interpolated linearly between neighbours."""

    mean: float
    p50: float
    p90: float | None
    """None where an imported file does not say; likewise :attr:`p95`."""
    p95: float | None
    p99: float
    count: int | None = None
    """Requests that it is of; None where an imported file does not say."""


class EngineCounts(Record):
    """What the engine counted during a point, from its metrics; only engines of ours tell it."""

    kv_pages: _Many
    """Of the whole pool."""
    kv_pages_used_mean: float
    kv_pages_used_most: _Many
    running_most: _Many
    waiting_most: _Many
    prompt_tokens: _Many
    cached_tokens: _Many
    """Of these: not computed, because the prefix cache had them."""
    steps: _Many
    preemptions: _Many
    tag_checks: _Many
    tag_mismatches: _Many
    content_checks: _Many
    content_mismatches: _Many


class GpuUse(Record):
    """What NVML said of one GPU during a point."""

    index: int
    name: str
    memory_used_most: _Many
    energy_j: float | None
    """None where the GPU does not count it."""
    utilization_mean: float | None
    """From 0 to 1."""


class Point(Record):
    """One concurrency, measured once."""

    concurrency: _Few
    repeat: _Few
    """From 0."""
    began_at: Moment
    duration_s: float = Field(ge=_SHORTEST_S, le=_LONGEST_S)
    """From the first request's start to the last one's end."""
    completed: _Few
    failed: dict[str, _Few] = Field(default_factory=dict)
    """Requests that failed, by kind of error."""
    cancelled: _Few = 0
    """Requests that the workload cancelled on purpose."""
    input_tokens: _Many
    """Of completed requests."""
    output_tokens: _Many
    """Of completed requests."""
    tokens_from: TokensFrom
    ttft: Percentiles | None
    """To the first token; None where nobody could see it."""
    inter_token: Percentiles | None
    """Of each request: (end - first token) / (output tokens - 1)."""
    end_to_end: Percentiles | None
    """None when no request completed."""
    engine: EngineCounts | None = None
    gpus: tuple[GpuUse, ...] = ()
    other_cores: float | None = None
    """Cores that processes other than the benchmark and what it measures kept busy; None where that cannot be known."""

    @property
    def output_tokens_per_s(self) -> float:
        """Of all requests together."""
        return self.output_tokens / self.duration_s

    @property
    def input_tokens_per_s(self) -> float:
        """Of all requests together."""
        return self.input_tokens / self.duration_s

    @property
    def total_tokens_per_s(self) -> float:
        """Input and output."""
        return self.input_tokens_per_s + self.output_tokens_per_s

    @property
    def requests_per_s(self) -> float:
        """Completed ones."""
        return self.completed / self.duration_s

    @property
    def failures(self) -> int:
        """Of every kind."""
        return sum(self.failed.values())

    @property
    def noisy(self) -> bool:
        """Whether others took so much of the machine that this may not be the subject's speed."""
        return self.other_cores is not None and self.other_cores > NOISY_CORES


class PrefillPoint(Record):
    """Prompts of one length, one at a time, each with a single token of answer; measured once."""

    input_tokens: _Few
    """As asked for: repeats of one length share it."""
    repeat: _Few
    began_at: Moment
    requests: _Few
    """That were answered."""
    ttft: Percentiles | None
    """None when no prompt was answered."""
    other_cores: float | None = None
    measured_tokens: float | None = Field(default=None, ge=0, lt=2**53)
    """That answered prompts really had: the median. None when none was answered, and where nobody counted."""
    failed: dict[str, _Few] = Field(default_factory=dict)
    """Requests that failed, by kind of error."""
    engine: EngineCounts | None = None
    gpus: tuple[GpuUse, ...] = ()

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens that prompts really had, over the median time to the first token; None without such a time."""
        return (
            (self.measured_tokens or self.input_tokens) / self.ttft.p50 if self.ttft and self.ttft.p50 >= _SHORTEST_S else None
        )

    @property
    def failures(self) -> int:
        """Of every kind."""
        return sum(self.failed.values())

    @property
    def noisy(self) -> bool:
        """As :attr:`Point.noisy`."""
        return self.other_cores is not None and self.other_cores > NOISY_CORES


class LiveSample(Record):
    """A moment while it runs, about one a second."""

    at_s: float
    """Since the run began."""
    stage: str
    """What is being measured, in words: ``8 at once, repeat 2``."""
    output_tokens_per_s: float | None
    running: int | None
    waiting: int | None
    kv_pages_used: int | None
    completed: int | None
    """Requests, since the run began."""
