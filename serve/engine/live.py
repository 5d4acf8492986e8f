"""The live requests of a loop: their unfinished answers, what came out of them, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from roundhouse.errors import RequestError

from .latency import LatencyHistogram
from .progress import chunk_of
from .request import Chunk, Failure, Output, Request
from .scheduler import Scheduler
from .sequence import Sequence

__all__ = ["LiveRequest", "LiveRequests"]


@dataclass(eq=False)
class LiveRequest:
    """A request and its unfinished answers. Times are in seconds of the loop's clock."""

    request_id: str
    arrived: float
    deadline: float | None
    answers: list[Sequence]
    last_token: dict[int, float] = field(default_factory=dict)
    """When each answer got its latest token, by index."""

    def seconds_waited(self, index: int, now: float) -> tuple[float, bool]:
        """Note a token of an answer; returns the seconds it took, and whether it is the answer's first."""
        before = self.last_token.get(index)
        self.last_token[index] = now
        return (now - self.arrived, True) if before is None else (now - before, False)


class LiveRequests:
    """Every live request by its id, and the outputs that nobody has taken yet.

    Whichever way a request ends, its sequences leave the scheduler here, and it says its last here.

    Args:
        scheduler: has their sequences.
        clock: seconds that never go back.
    """

    def __init__(self, scheduler: Scheduler, clock: Callable[[], float]) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._requests: dict[str, LiveRequest] = {}
        self._outputs: list[Output] = []
        self.tokens_out = 0
        self.ttft, self.inter_token = LatencyHistogram(), LatencyHistogram()

    def __bool__(self) -> bool:
        """Whether anything is live or waits to be taken."""
        return bool(self._requests or self._outputs)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._requests

    def __getitem__(self, request_id: str) -> LiveRequest:
        return self._requests[request_id]

    def get(self, request_id: str) -> LiveRequest | None:
        """The live request of this id, if there is one."""
        return self._requests.get(request_id)

    def take(self) -> list[Output]:
        """Everything that came out since the last call."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def begin(self, request: Request, answers: list[Sequence]) -> None:
        """Put a request in line. One that may generate nothing is answered at once."""
        if answers[0].max_new == 0:
            self._outputs += [chunk_of(answer, [], "", "length") for answer in answers]
            return
        now = self._clock()
        deadline = None if request.deadline_s is None else now + request.deadline_s
        self._requests[request.request_id] = LiveRequest(request.request_id, now, deadline, answers)
        for answer in answers:
            self._scheduler.add(answer)

    def refuse(self, request_id: str, error: RequestError) -> None:
        """Answer a request that never was live."""
        self._outputs.append(Failure(request_id=request_id, code=error.code, message=error.message))

    def hand_out(self, live: LiveRequest, answer: Sequence, chunk: Chunk, now: float) -> None:
        """Give out a token that an answer got now; the answer ends when the chunk has a finish reason."""
        self.tokens_out += 1
        seconds, first = live.seconds_waited(answer.index, now)
        (self.ttft if first else self.inter_token).observe(seconds)
        if chunk.finish_reason is not None:
            self._end(live, answer)
        self._outputs.append(chunk)

    def cancel(self, request_id: str) -> None:
        """End a request that nobody waits for any more; an unknown id is ignored, for it may just have ended."""
        live = self._requests.get(request_id)
        if live is None:
            return
        for answer in list(live.answers):
            self._end(live, answer)
            self._outputs.append(chunk_of(answer, [], "", "cancelled"))

    def fail(self, live: LiveRequest, error: RequestError) -> None:
        """End a request with an error."""
        for answer in list(live.answers):
            self._end(live, answer)
        self.refuse(live.request_id, error)

    def fail_late(self) -> None:
        """End every request whose deadline is over."""
        now = self._clock()
        for live in [live for live in self._requests.values() if live.deadline is not None and now >= live.deadline]:
            self.fail(live, RequestError("deadline", f"the request had not ended {now - live.arrived:.1f} s after it came"))

    def condemn(self, live: LiveRequest, error: RequestError) -> None:
        """End a request with an error, and put the pages that only it holds out of use."""
        del self._requests[live.request_id]
        for answer in live.answers:
            self._scheduler.condemn(answer)
        self.refuse(live.request_id, error)

    def _end(self, live: LiveRequest, answer: Sequence) -> None:
        self._scheduler.finish(answer)
        live.answers.remove(answer)
        if not live.answers:
            del self._requests[live.request_id]
