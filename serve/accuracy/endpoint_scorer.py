"""An OpenAI-compatible endpoint answers, over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from roundhouse.errors import ServeError

from .endpoint_answers import answer_of, likelihood_of, read_tokens
from .endpoint_requests import EndpointRequests, RefusedError
from .scorer import CallAnswer, CallQuestion, Continuation, Likelihood, Need, Prompt, TextToken

__all__ = ["EndpointScorer"]

_MOST_STOPS = 4
"""OpenAI's own API takes no more."""
_PROBE_TOOL = {
    "type": "function",
    "function": {"name": "probe", "description": "Do nothing.", "parameters": {"type": "object", "properties": {}}},
}


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
        self._requests = EndpointRequests(url, model, key, stopping, timeout_s=timeout_s)
        self.room: int | None = None

    def lacks(self, need: Need) -> str | None:
        match need:  # only what is needed is tried: the rest may be broken
            case "completions":
                return self._no_completions
            case "likelihoods":
                return self._no_likelihoods
            case "calls":
                return self._no_calls

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, str]]:
        return self._requests.each(prompts, self._complete)

    def likelihoods(self, continuations: Sequence[Continuation]) -> Iterator[tuple[int, Likelihood]]:
        def one(continuation: Continuation) -> Likelihood:
            if not continuation.context:
                raise ServeError("an endpoint cannot say how likely the first word of a text is")
            answer = self._echo(continuation.context + continuation.text, top=1)
            return likelihood_of(answer, continuation)

        return self._requests.each(continuations, one)

    def read(self, texts: Sequence[str], *, top: int) -> Iterator[tuple[int, list[TextToken]]]:
        return self._requests.each(texts, lambda text: read_tokens(self._echo(text, top=min(top, 5)), text))

    def call(self, questions: Sequence[CallQuestion]) -> Iterator[tuple[int, CallAnswer]]:
        def one(question: CallQuestion) -> CallAnswer:
            body = {
                "messages": [{"role": "user", "content": question.request}],
                "tools": list(question.tools),
                "max_tokens": question.max_tokens,
                "temperature": 0,
            }
            return answer_of(self._requests.post("/chat/completions", body))

        return self._requests.each(questions, one)

    def count_tokens(self, text: str) -> int | None:
        return None

    def close(self) -> None:
        self._requests.close()

    @cached_property
    def _no_completions(self) -> str | None:
        return self._requests.refusal("/completions", {"prompt": "One, two,", "max_tokens": 1})

    @cached_property
    def _no_likelihoods(self) -> str | None:
        if reason := self._no_completions:
            return reason
        text = "One, two, three"
        body = {"prompt": text, "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0}
        try:
            answer = self._requests.alone("/completions", body)
        except RefusedError as error:
            return f"the endpoint gives no log-probabilities of prompts ({error.message})"
        try:
            read_tokens(answer, text)
        except ServeError as error:
            return f"the endpoint gives no log-probabilities of prompts: {error.message}"
        return None

    @cached_property
    def _no_calls(self) -> str | None:
        body = {"messages": [{"role": "user", "content": "Hello"}], "tools": [_PROBE_TOOL], "max_tokens": 1}
        return self._requests.refusal("/chat/completions", body)

    def _complete(self, prompt: Prompt) -> str:
        body: dict[str, Any] = {"prompt": prompt.text, "max_tokens": prompt.max_tokens, "temperature": prompt.temperature}
        if prompt.stop:
            body["stop"] = list(prompt.stop[:_MOST_STOPS])
        if prompt.temperature:
            body |= {"top_p": prompt.top_p, "seed": prompt.seed}
        text = str(_only_choice(self._requests.post("/completions", body)).get("text") or "")
        return min((text.split(stop, 1)[0] for stop in prompt.stop), key=len, default=text)

    def _echo(self, text: str, *, top: int) -> dict[str, Any]:
        # One token more than the text: not every server takes none.
        return self._requests.post(
            "/completions", {"prompt": text, "max_tokens": 1, "echo": True, "logprobs": top, "temperature": 0}
        )


def _only_choice(answer: dict[str, Any]) -> dict[str, Any]:
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ServeError("the endpoint answered without a choice")
    return choices[0]
