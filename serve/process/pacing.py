"""How often the answers of an engine are passed on: under load, several tokens go out together.

A response through Triton costs as much of a core as a token of a small model. So each answer has a pause between two
responses that grows with the number of live requests; what comes meanwhile is merged. A first piece of text and a last one
never wait, and a lonely request's pause is shorter than a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import msgspec

from roundhouse.build.hardware import usable_cores

from ..engine.request import Chunk, Output

__all__ = ["Pacer", "merge_chunks"]

_RESPONSES_PER_CORE = 250
"""A second: then responses and their readers take about a fifth of the machine."""
_LONGEST_PAUSE_S = 0.1


def merge_chunks(first: Chunk, then: Chunk) -> Chunk:
    """Two chunks of one answer that follow one another, as one that says the same."""
    logprobs = None
    if first.logprobs is not None or then.logprobs is not None:
        logprobs = [*(first.logprobs or ()), *(then.logprobs or ())]
    return msgspec.structs.replace(
        then, text=first.text + then.text, token_ids=first.token_ids + then.token_ids, logprobs=logprobs
    )


class Pacer:
    """Holds outputs of live requests until it is their time. Within a request, order is kept. Not for several threads.

    Args:
        responses_per_s: for all requests together; by default what this machine's cores bear.
        clock: seconds that never go back.
    """

    def __init__(self, responses_per_s: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = responses_per_s or _RESPONSES_PER_CORE * usable_cores()
        self._clock = clock
        self._due: list[Output] = []
        self._held: dict[tuple[str, int], Chunk] = {}
        self._spoke: dict[str, dict[int, float]] = {}
        """When an answer's last text was passed on, by request and index."""
        self._pause = 0.0

    def add(self, outputs: Iterable[Output]) -> None:
        """Take what has come, in order."""
        for output in outputs:
            if not isinstance(output, Chunk):
                self._release_request(output.request_id)
                self._due.append(output)
                continue
            answer = (output.request_id, output.index)
            held = self._held.get(answer)
            self._held[answer] = merge_chunks(held, output) if held else output

    def take(self, live: int) -> list[Output]:
        """What is to be passed on now.

        Args:
            live: requests that have not ended.
        """
        now = self._clock()
        self._pause = min(live / self._rate, _LONGEST_PAUSE_S)
        for answer, chunk in list(self._held.items()):
            if chunk.finish_reason is not None or now >= self._time_of(answer):
                self._release(answer, now)
        due, self._due = self._due, []
        return due

    def take_all(self) -> list[Output]:
        """Everything that is held, whatever its time."""
        for request_id, _ in list(self._held):
            self._release_request(request_id)
        due, self._due = self._due, []
        return due

    def wait_s(self, most: float) -> float:
        """Seconds until something held is due, at most ``most``."""
        if not self._held:
            return most
        return min(most, max(0.0, min(map(self._time_of, self._held)) - self._clock()))

    def _time_of(self, answer: tuple[str, int]) -> float:
        request_id, index = answer
        spoke = self._spoke.get(request_id, {}).get(index)
        return 0.0 if spoke is None else spoke + self._pause

    def _release(self, answer: tuple[str, int], now: float) -> None:
        request_id, index = answer
        chunk = self._held.pop(answer)
        self._due.append(chunk)
        if chunk.finish_reason is None:
            if chunk.text:
                self._spoke.setdefault(request_id, {})[index] = now
        elif request_id in self._spoke:
            self._spoke[request_id].pop(index, None)
            if not self._spoke[request_id]:
                del self._spoke[request_id]

    def _release_request(self, request_id: str) -> None:
        """Let go of all that is held of a request that ends, and forget it."""
        for answer in [answer for answer in self._held if answer[0] == request_id]:
            self._due.append(self._held.pop(answer))
        self._spoke.pop(request_id, None)
