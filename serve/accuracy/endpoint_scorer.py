"""An OpenAI-compatible endpoint answers, over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cached_property
from typing import Any, TypeVar

import httpx

from roundhouse.errors import BenchmarkStoppedError, ServeError

from ..measurement.endpoints import is_here
from .connections import Connections
from .endpoint_answers import answer_of, likelihood_of, read_tokens
from .scorer import CallAnswer, CallQuestion, Continuation, Likelihood, Need, Prompt, TextToken

__all__ = ["EndpointScorer"]

_AT_ONCE = 16
_TRIES = 4
_BUSY = (429, 502, 503, 504)
_POLL_S = 0.2
_CONNECT_S = 15.0
_MOST_STOPS = 4
"""OpenAI's own API takes no more."""
_MOST_REASON = 250
"""Characters of what a server says of a request that failed."""
_PROBE_TOOL = {
    "type": "function",
    "function": {"name": "probe", "description": "Do nothing.", "parameters": {"type": "object", "properties": {}}},
}

Answer = TypeVar("Answer")


class EndpointScorer:
    """Asks a server, some requests at once.

    Likelihoods need ``/completions`` with ``echo`` and ``logprobs``, which vLLM has and others have not: that is tried once.

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
        self.room: int | None = None

    def lacks(self, need: Need) -> str | None:
        return {"completions": self._no_completions, "likelihoods": self._no_likelihoods, "calls": self._no_calls}[need]

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, str]]:
        return self._each(prompts, self._complete)

    def likelihoods(self, continuations: Sequence[Continuation]) -> Iterator[tuple[int, Likelihood]]:
        def one(continuation: Continuation) -> Likelihood:
            if not continuation.context:
                raise ServeError("an endpoint cannot say how likely the first word of a text is")
            answer = self._echo(continuation.context + continuation.text, top=1)
            return likelihood_of(answer, continuation)

        return self._each(continuations, one)

    def read(self, texts: Sequence[str], *, top: int) -> Iterator[tuple[int, list[TextToken]]]:
        return self._each(texts, lambda text: read_tokens(self._echo(text, top=min(top, 5)), text))

    def call(self, questions: Sequence[CallQuestion]) -> Iterator[tuple[int, CallAnswer]]:
        def one(question: CallQuestion) -> CallAnswer:
            body = {
                "messages": [{"role": "user", "content": question.request}],
                "tools": list(question.tools),
                "max_tokens": question.max_tokens,
                "temperature": 0,
            }
            return answer_of(self._post("/chat/completions", body))

        return self._each(questions, one)

    def count_tokens(self, text: str) -> int | None:
        return None

    def close(self) -> None:
        self._client.close()

    @cached_property
    def _no_completions(self) -> str | None:
        return self._refusal("/completions", {"prompt": "One, two,", "max_tokens": 1})

    @cached_property
    def _no_likelihoods(self) -> str | None:
        if reason := self._no_completions:
            return reason
        text = "One, two, three"
        body = {"prompt": text, "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0}
        if reason := self._refusal("/completions", body):
            return f"the endpoint gives no log-probabilities of prompts ({reason})"
        try:
            read_tokens(self._alone("/completions", body), text)
        except ServeError as error:
            return f"the endpoint gives no log-probabilities of prompts: {error.message}"
        return None

    @cached_property
    def _no_calls(self) -> str | None:
        body = {"messages": [{"role": "user", "content": "Hello"}], "tools": [_PROBE_TOOL], "max_tokens": 1}
        return self._refusal("/chat/completions", body)

    def _complete(self, prompt: Prompt) -> str:
        body: dict[str, Any] = {"prompt": prompt.text, "max_tokens": prompt.max_tokens, "temperature": prompt.temperature}
        if prompt.stop:
            body["stop"] = list(prompt.stop[:_MOST_STOPS])
        if prompt.temperature:
            body |= {"top_p": prompt.top_p, "seed": prompt.seed}
        text = str(_only_choice(self._post("/completions", body)).get("text") or "")
        return min((text.split(stop, 1)[0] for stop in prompt.stop), key=len, default=text)

    def _echo(self, text: str, *, top: int) -> dict[str, Any]:
        # One token more than the text: not every server takes none.
        return self._post("/completions", {"prompt": text, "max_tokens": 1, "echo": True, "logprobs": top, "temperature": 0})

    def _refusal(self, path: str, body: dict[str, Any]) -> str | None:
        """Why the endpoint does not take such a request, in its own words; None when it does."""
        try:
            self._alone(path, body)
        except _RefusedError as error:
            return error.message
        return None

    def _alone(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """A request that a stop ends, like the others."""
        ((_, answer),) = self._each([body], lambda each: self._post(path, each))
        return answer

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
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
            except ValueError:
                answer = None
            if not isinstance(answer, dict):
                raise ServeError(f"{self._client.base_url} answered with something that is no JSON object")
            return answer
        refused = 400 <= response.status_code < 500 and response.status_code not in (401, 403, 408, 429)
        raise (_RefusedError if refused else ServeError)(self._kept(_reason(path, response)))

    def _kept(self, text: str) -> str:
        """As much of a reason as is written down, without the key: some servers repeat one that they do not know."""
        return (text.replace(self._key, "<redacted>") if self._key else text)[:_MOST_REASON]

    def _each(self, questions: Sequence[Any], ask: Callable[[Any], Answer]) -> Iterator[tuple[int, Answer]]:
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


class _RefusedError(ServeError):
    """The server understood, and does not do such a thing."""


def _only_choice(answer: dict[str, Any]) -> dict[str, Any]:
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ServeError("the endpoint answered without a choice")
    return choices[0]


def _reason(path: str, response: httpx.Response) -> str:
    try:
        body = response.json()
        error = body.get("error", body)
        told = error.get("message") if isinstance(error, dict) else error
    except (ValueError, AttributeError):
        told = None
    return f"{path} answered {response.status_code}: {told or response.reason_phrase}"
