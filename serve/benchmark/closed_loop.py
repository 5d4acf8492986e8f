"""A closed loop of requests on an engine loop: so many at once, the next as soon as one ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..engine.loop import EngineLoop
from ..engine.request import Chunk, Failure, Output, Request, SamplingParams
from .measuring import MeasuredRequest
from .prompts import PlannedRequest

__all__ = ["ClosedLoop"]


@dataclass
class _InFlight:
    planned: PlannedRequest
    began: float
    first_token: float | None = None


class ClosedLoop:
    """Sends requests to an engine loop in this thread and times them, all on one clock.

    A token's time is when the step that made it has returned: detokenized, as a client would be sent it.

    Args:
        loop: idle.
        requests: what to send, in order.
        concurrency: how many of them at once.
        timeout_s: when a request that has not ended fails.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        loop: EngineLoop,
        requests: Sequence[PlannedRequest],
        *,
        concurrency: int,
        timeout_s: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._loop = loop
        self._coming = list(enumerate(requests))[::-1]
        self._concurrency = concurrency
        self._timeout_s = timeout_s
        self._clock = clock
        self._in_flight: dict[str, _InFlight] = {}
        self.measured: list[MeasuredRequest] = []
        """Those that have ended, in the order in which they did."""

    @property
    def done(self) -> bool:
        """Whether all have ended."""
        return not self._coming and not self._in_flight

    def step(self) -> None:
        """Send what is due, cancel what is to be cancelled, and run one step."""
        while self._coming and len(self._in_flight) < self._concurrency:
            self._send(*self._coming.pop())
        self._cancel_due()
        outputs = self._loop.step()
        now = self._clock()
        for output in outputs:
            self._take(output, now)

    def cancel_all(self) -> None:
        """Send no more, and end what is in flight. Nothing of it was measured."""
        self._coming.clear()
        for request_id in self._in_flight:
            self._loop.cancel(request_id)
        self._in_flight.clear()
        while self._loop.has_work:
            self._loop.step()

    def _send(self, number: int, planned: PlannedRequest) -> None:
        sampling = SamplingParams(max_tokens=planned.output_tokens, ignore_eos=True)
        request = Request(request_id=str(number), prompt_ids=planned.prompt_ids, sampling=sampling, deadline_s=self._timeout_s)
        self._in_flight[request.request_id] = _InFlight(planned, self._clock())
        self._loop.submit(request)

    def _cancel_due(self) -> None:
        now = self._clock()
        for request_id, each in self._in_flight.items():
            after = each.planned.cancel_after_s
            if after is not None and now - each.began >= after:
                self._loop.cancel(request_id)

    def _take(self, output: Output, now: float) -> None:
        each = self._in_flight.get(output.request_id)
        if each is None:
            return
        if isinstance(output, Failure):
            self._end(output.request_id, MeasuredRequest("failed", each.began, now, each.first_token, error=output.code))
            return
        if output.token_ids and each.first_token is None:
            each.first_token = now
        if output.finish_reason is not None:
            self._end(output.request_id, _ended(each, output, now))

    def _end(self, request_id: str, measured: MeasuredRequest) -> None:
        del self._in_flight[request_id]
        self.measured.append(measured)


def _ended(each: _InFlight, last: Chunk, now: float) -> MeasuredRequest:
    return MeasuredRequest(
        "cancelled" if last.finish_reason == "cancelled" else "completed",
        each.began,
        now,
        each.first_token,
        input_tokens=last.prompt_tokens,
        output_tokens=last.completion_tokens,
    )
