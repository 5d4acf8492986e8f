"""Requests to an OpenAI-compatible endpoint: some at once, again while it is busy, and ended at once when they are to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import httpx

from roundhouse.errors import BenchmarkStoppedError, ServeError

from ..history.record import storable
from ..measurement.endpoints import is_here
from .connections import Connections

__all__ = ["EndpointRequests", "RefusedError"]

_AT_ONCE = 16
_TRIES = 4
_BUSY = (429, 502, 503, 504)
_POLL_S = 0.2
_CONNECT_S = 15.0
_MOST_REASON = 250
"""Characters of what a server says of a request that failed."""

Answer = TypeVar("Answer")


class EndpointRequests:
    """Asks one model of one server.

    Args:
        url: base URL, which ends with ``/v1``.
        model: the model's name there.
        key: API key, or None.
        stopping: set when the evaluation is to end.
        timeout_s: of one request.
    """

    def __init__(self, url: str, model: str, key: str | None, stopping: threading.Event, *, timeout_s: float) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S))
        self._client = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=not is_here(url))
        self._connections = Connections()
        self._model, self._key = model, key
        self._stopping = stopping

    def close(self) -> None:
        """Close its connections. May be called twice."""
        self._client.close()

    def each(self, questions: Sequence[Any], ask: Callable[[Any], Answer]) -> Iterator[tuple[int, Answer]]:
        """Ask several questions at once; answers come as they are ready, each with its question's place.

        Args:
            questions: what is asked.
            ask: asks one of them, in a thread of its own.

        Raises:
            ServeError: one could not be answered.
            BenchmarkStoppedError: the evaluation is asked to end.
        """
        waiting = iter(enumerate(questions))
        asked: dict[Future[Answer], int] = {}
        self._connections.mend()
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="evaluate") as pool:
            try:
                while True:
                    while len(asked) < _AT_ONCE and (following := next(waiting, None)) is not None:
                        asked[pool.submit(ask, following[1])] = following[0]
                    if not asked:
                        return
                    for done in wait(asked, _POLL_S, FIRST_COMPLETED).done:
                        yield asked.pop(done), done.result()
                    if self._stopping.is_set():
                        raise BenchmarkStoppedError("the evaluation was stopped")
            finally:
                # What is under way would be waited for as long as a request may take, and nobody reads it any more.
                pool.shutdown(wait=False, cancel_futures=True)
                if asked:
                    self._connections.break_all()

    def refusal(self, path: str, body: dict[str, Any]) -> str | None:
        """Why the endpoint does not take such a request, in its own words; None when it does.

        Raises:
            ServeError: as :meth:`alone`, where that says nothing of what the endpoint can.
        """
        try:
            self.alone(path, body)
        except RefusedError as error:
            return error.message
        return None

    def alone(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send one request that a stop ends, like the others.

        Raises:
            RefusedError: the server does not do such a thing.
            ServeError: it was not answered, or with something that is none.
            BenchmarkStoppedError: the evaluation is asked to end.
        """
        ((_, answer),) = self.each([body], lambda each: self.post(path, each))
        return answer

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send one request, several times to a busy server.

        Raises:
            ServeError: it was not answered, or with something that is none.
            BenchmarkStoppedError: the evaluation is asked to end.
        """
        for tried in range(1, _TRIES + 1):
            if self._stopping.is_set():
                raise BenchmarkStoppedError("the evaluation was stopped")
            try:
                response = self._client.post(path, json={"model": self._model, **body}, extensions=self._connections.extensions)
            except httpx.HTTPError as error:
                raise ServeError(f"{self._client.base_url} does not answer: {str(error) or type(error).__name__}") from None
            if response.status_code not in _BUSY or tried == _TRIES:
                break
            self._stopping.wait(2.0**tried)
        if response.is_success:
            try:
                answer: dict[str, Any] | None = response.json()
            except (ValueError, RecursionError):
                answer = None
            if not isinstance(answer, dict):
                raise ServeError(f"{self._client.base_url} answered with something that is no JSON object")
            return answer
        refused = 400 <= response.status_code < 500 and response.status_code not in (401, 403, 408, 429)
        raise (RefusedError if refused else ServeError)(self._kept(_reason(path, response)))

    def _kept(self, text: str) -> str:
        """As much of a reason as is written down, without the key: some servers repeat one that they do not know."""
        return storable(text.replace(self._key, "<redacted>") if self._key else text)[:_MOST_REASON]


class RefusedError(ServeError):
    """The server understood, and does not do such a thing."""


def _reason(path: str, response: httpx.Response) -> str:
    try:
        body = response.json()
        error = body.get("error", body)
        told = error.get("message") if isinstance(error, dict) else error
    except (ValueError, AttributeError, RecursionError):
        told = None
    return f"{path} answered {response.status_code}: {told or response.reason_phrase}"
