"""What decoding can be expected to yield: bytes that a step must read, over the speed at which they can be read.

    t = t0 + (dense + experts(b) + kv(b, context)) / (0.8 * bandwidth),   tokens/s = b / t

per rank, with ``experts(b)`` the distinct experts that ``b`` tokens reach under uniform routing. ``t0``, everything that
is not reading, is zero (an upper bound, *derived*) unless a measured run of the same engine tells it (*fitted*). Rows that
were measured are given as they were (*measured*).

Where the bandwidth is not known, ``t = t0 + slope * b`` is fitted to what one run measured at two or more concurrencies, and
is believed between the lowest and the highest of them (*fitted* as well).

What is measured is requests in flight over the time between two tokens of one of them: decoding alone at one request, and
above that with what prompts of the others took of the same steps. A run's output tokens over its duration would do for ``t0``
only if prompts took no time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import linear_regression
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ..models.parameters import Parameter
from ..models.shape import ModelShape
from .kv_layout import KvLayout
from .scheme import Scheme
from .sharding import Parallel, local_shape

__all__ = [
    "CONCURRENCIES",
    "DecodeEstimate",
    "DecodeModel",
    "MeasuredRun",
    "StepBytes",
    "between_measured",
    "estimates",
    "measured_estimates",
    "price_per_million",
]

CONCURRENCIES = (1, 8, 16, 32, 64)
_REACHED_BANDWIDTH = 0.8
"""The part of a data sheet's bandwidth that kernels reach."""

_NEAR = 0.1
"""How far apart, as a part, two contexts are that count as one."""

Basis = Literal["derived", "fitted", "measured"]


class DecodeEstimate(BaseModel):
    """Output tokens a second of the whole deployment, with ``concurrency`` requests in flight."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    concurrency: int
    tokens_per_s: float
    basis: Basis
    price_per_million_tokens: float | None = None
    """In the currency of the price given, or None without one."""
    run: str | None = None
    """Id of the benchmark run that it is measured in or fitted to; None for what is derived."""


@dataclass(frozen=True)
class MeasuredRun:
    """One measured row of the same engine on the same hardware.

    ``tokens_per_s`` are of all requests together while they decode; ``context`` are the tokens that a request holds on average
    meanwhile; ``run`` is the id of the benchmark run.
    """

    concurrency: int
    tokens_per_s: float
    context: int
    run: str | None = None

    def speaks_for(self, context: float) -> bool:
        """Whether it was measured at this context, or at one so near that the difference is lost in noise."""
        return abs(self.context - context) <= _NEAR * context


@dataclass(frozen=True)
class StepBytes:
    """Bytes that one rank reads in one decode step."""

    dense: float
    experts: float
    kv: float


@dataclass(frozen=True)
class DecodeModel:
    """The decode speed of one engine on one kind of GPU.

    ``parameters`` are what is held in memory (latent attention in its absorbed form included), ``layout`` what one rank
    keeps of a token. ``kv_time_factor`` is the time of reading the cache over what its bytes alone would take.
    """

    parameters: Sequence[Parameter]
    scheme: Scheme
    shape: ModelShape
    parallel: Parallel
    layout: KvLayout
    bandwidth: float
    t0: float = 0.0
    kv_time_factor: float = 1.0

    def step_bytes(self, concurrency: float, context: float) -> StepBytes:
        """What a step of ``concurrency`` requests with ``context`` tokens each reads on one rank."""
        dense = experts = 0.0
        for parameter in self.parameters:
            each = self.scheme.bytes_of(parameter, local_shape(parameter, self.shape, self.parallel))
            total = each * max(1, len(parameter.layers))
            if parameter.part == "routed_expert":
                experts += total * self._experts_reached(concurrency) / self.parallel.expert
            elif self._is_read(parameter):
                dense += total * parameter.copies
        requests = concurrency / (self.parallel.tensor if self.parallel.attention_data else 1)
        return StepBytes(dense, experts, requests * self._kv_read(context))

    def tokens_per_s(self, concurrency: int, context: float) -> float:
        """Output tokens a second of all requests together.

        Pipeline stages work on equal parts of the requests at once: a step then reads what one part asks for.
        """
        at_once = max(1.0, concurrency / self.parallel.pipeline)
        return concurrency / (self.t0 + self._reading_time(at_once, context))

    def fit_t0(self, run: MeasuredRun) -> float:
        """The seconds of a step that reading does not explain, from one measured row; never less than zero."""
        return max(0.0, run.concurrency / run.tokens_per_s - self._reading_time(run.concurrency, run.context))

    def fit_kv_time_factor(self, run: MeasuredRun) -> float:
        """How much longer than its bytes take the cache was read in a measured row, t0 being known."""
        step = self.step_bytes(run.concurrency, run.context)
        speed = _REACHED_BANDWIDTH * self.bandwidth
        return (run.concurrency / run.tokens_per_s - self.t0 - (step.dense + step.experts) / speed) / (step.kv / speed)

    def _reading_time(self, concurrency: float, context: float) -> float:
        step = self.step_bytes(concurrency, context)
        return (step.dense + step.experts + step.kv * self.kv_time_factor) / (_REACHED_BANDWIDTH * self.bandwidth)

    def _experts_reached(self, tokens: float) -> float:
        moe = self.shape.moe
        if moe is None:
            return 0.0
        missed = math.pow(1 - moe.experts_per_token / moe.experts, tokens)
        return moe.experts * (1 - missed)

    def _is_read(self, parameter: Parameter) -> bool:
        if parameter.part == "embedding":
            return self.shape.tied_embeddings  # as the output head; looking words up reads next to nothing
        absorbed = self.shape.latent is not None and "kv_b_proj" in parameter.name and parameter.part == "attention"
        return parameter.part != "other" and not absorbed

    def _kv_read(self, context: float) -> float:
        """Bytes of cache that one request's step reads: all of it, its windows, or the rows that an indexer picks."""
        total = 0.0
        for group in self.layout.groups:
            seen = context if group.window is None else min(context, group.window)
            for field in group.fields:
                sparse = self.shape.indexer is not None and field.name == "latent"
                rows = min(seen, self.shape.indexer.top_k) if sparse and self.shape.indexer else seen
                total += rows * field.bytes_per_token
        return total


def price_per_million(price_per_gpu_hour: float, gpus: int, tokens_per_s: float) -> float:
    """What a million output tokens cost while all of the GPUs make ``tokens_per_s`` together."""
    return price_per_gpu_hour * gpus / 3600 / tokens_per_s * 1e6


def estimates(
    model: DecodeModel, concurrencies: Iterable[int], context: int, measured: Sequence[MeasuredRun]
) -> list[DecodeEstimate]:
    """One row for each concurrency: as measured where it was, fitted where another one was, else derived."""
    basis: Basis = "derived"
    fitted_to = None
    if measured:
        alone = min(measured, key=lambda run: run.concurrency)  # what is not reading weighs most where there is least to read
        model, basis, fitted_to = replace(model, t0=model.fit_t0(alone)), "fitted", alone.run
    seen = {row.concurrency: row for row in measured_estimates(measured, context)}
    return [
        seen[n]
        if n in seen
        else DecodeEstimate(concurrency=n, tokens_per_s=model.tokens_per_s(n, context), basis=basis, run=fitted_to)
        for n in concurrencies
    ]


def between_measured(concurrencies: Iterable[int], context: int, measured: Iterable[MeasuredRun]) -> list[DecodeEstimate]:
    """Rows where the bandwidth is not known: as measured where it was, and between two measured ones fitted to all of them.

    The time of a step is taken to grow evenly with its requests (``t0 + slope * b``, least squares). Below the lowest and
    above the highest measured concurrency nothing is said: nobody saw whether it goes on like that.

    Args:
        concurrencies: to be told besides the measured ones.
        context: tokens that a request holds.
        measured: of one run.
    """
    fitting = [row for row in measured if row.speaks_for(context)]
    rows = {row.concurrency: row for row in measured_estimates(fitting, context)}
    if len(rows) < 2:
        return list(rows.values())
    line = linear_regression([row.concurrency for row in fitting], [row.concurrency / row.tokens_per_s for row in fitting])
    for n in concurrencies:
        step_s = line.intercept + line.slope * n
        if n not in rows and min(rows) < n < max(rows) and step_s > 0:
            rows[n] = DecodeEstimate(concurrency=n, tokens_per_s=n / step_s, basis="fitted", run=fitting[0].run)
    return [rows[n] for n in sorted(rows)]


def measured_estimates(measured: Iterable[MeasuredRun], context: int) -> list[DecodeEstimate]:
    """The rows that speak for this context, as they were measured."""
    return [
        DecodeEstimate(concurrency=row.concurrency, tokens_per_s=row.tokens_per_s, basis="measured", run=row.run)
        for row in sorted(measured, key=lambda row: row.concurrency)
        if row.speaks_for(context)
    ]
