"""What decoding can be expected to yield: bytes that a step must read, over the speed at which they can be read.

    t = t0 + (dense + experts(b) + kv(b, context)) / (0.8 * bandwidth),   tokens/s = b / t

per rank, with ``experts(b)`` the distinct experts that ``b`` tokens reach under uniform routing. ``t0``, everything that
is not reading, is zero (an upper bound, *derived*) unless measured runs of the same engine tell it (*fitted*). Rows that
were measured are given as they were (*measured*).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ..models.parameters import Parameter
from ..models.shape import ModelShape
from .kv_layout import KvLayout
from .scheme import Scheme
from .sharding import Parallel, local_shape

__all__ = ["CONCURRENCIES", "DecodeEstimate", "DecodeModel", "MeasuredRun", "StepBytes", "estimates", "price_per_million"]

CONCURRENCIES = (1, 8, 16, 32, 64)
_REACHED_BANDWIDTH = 0.8
"""The part of a data sheet's bandwidth that kernels reach."""

Basis = Literal["derived", "fitted", "measured"]


class DecodeEstimate(BaseModel):
    """Output tokens a second of the whole deployment, with ``concurrency`` requests in flight."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    concurrency: int
    tokens_per_s: float
    basis: Basis
    price_per_million_tokens: float | None = None
    """In the currency of the price given, or None without one."""


@dataclass(frozen=True)
class MeasuredRun:
    """One measured row of the same engine on the same hardware."""

    concurrency: int
    tokens_per_s: float
    context: int


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
    if measured:
        model = replace(model, t0=model.fit_t0(min(measured, key=lambda run: run.concurrency)))
        basis = "fitted"
    seen = {run.concurrency: run.tokens_per_s for run in measured if run.context == context}
    return [
        DecodeEstimate(concurrency=n, tokens_per_s=seen[n], basis="measured")
        if n in seen
        else DecodeEstimate(concurrency=n, tokens_per_s=model.tokens_per_s(n, context), basis=basis)
        for n in concurrencies
    ]
