"""From the engine's outputs to Triton responses, for one request.

``triton`` is Triton's ``triton_python_backend_utils``, which only exists inside the stub.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from ..engine.request import Chunk, Failure, Output
from ..process.pacing import merge_chunks
from .tensors import Returns

__all__ = ["Reply", "error_text"]


def error_text(code: str, message: str) -> str:
    """How an error reads to a client: gRPC streams carry only a text, so the code stands in front of it."""
    return f"[{code}] {message}"


@dataclass
class _Answer:
    """One of a request's answers: what has not been sent of it, and what is summed up over all of it."""

    held: Chunk | None = None
    logprob: float = 0.0
    ended: bool = False


class Reply:
    """Answers one request through Triton's decoupled sender.

    Args:
        triton: the ``triton_python_backend_utils`` module.
        sender: the request's response sender.
        streaming: whether to answer piece by piece, or once with the whole text of every answer.
        client_id: the id that the client gave the request; may be empty, or another request's too.
        answers: how many answers the request asked for.
        returns: which of the outputs that are not always there to send.
    """

    def __init__(
        self,
        triton: Any,
        sender: Any,
        *,
        streaming: bool,
        client_id: str = "",
        answers: int = 1,
        returns: Returns | None = None,
    ) -> None:
        self._triton = triton
        self._sender = sender
        self._streaming = streaming
        self._expected = answers
        self._answers: dict[int, _Answer] = {}
        self._returns = returns or Returns()
        self._cancelled = False
        self._failed = False
        self._finished = False
        self._ending = threading.Lock()
        self.client_id = client_id

    @property
    def cancelled(self) -> bool:
        """Whether the client has gone. May be asked from another thread, at any time."""
        with self._ending:
            return not self._finished and bool(self._sender.is_cancelled())

    @property
    def ended(self) -> bool:
        """Whether nothing comes any more: all answers have ended, or the request failed."""
        return self._failed or sum(answer.ended for answer in self._answers.values()) >= self._expected

    def take(self, output: Output) -> None:
        """Send what this output calls for; the one that ends the last answer ends the request."""
        if isinstance(output, Failure):
            self.fail(output.code, output.message)
            return
        answer = self._answers.setdefault(output.index, _Answer())
        answer.held = merge_chunks(answer.held, output) if answer.held else output
        answer.logprob += sum(token.logprob for token in output.logprobs or ())
        answer.ended = output.finish_reason is not None
        self._cancelled = self._cancelled or output.finish_reason == "cancelled"
        if self._cancelled:
            if self.ended:
                self.fail("cancelled", "the client cancelled the request")
        elif self._streaming:
            if answer.ended or answer.held.text:
                self._send([answer])
        elif self.ended:
            self._send([self._answers[index] for index in sorted(self._answers)])

    def fail(self, code: str, message: str) -> None:
        """End the request with an error."""
        self._failed = True
        kinds = self._triton.TritonError
        kind = {
            "invalid_request": kinds.INVALID_ARG,
            "unavailable": kinds.UNAVAILABLE,
            "overloaded": kinds.UNAVAILABLE,
            "cancelled": kinds.CANCELLED,
            "deadline": kinds.CANCELLED,
        }.get(code, kinds.INTERNAL)
        self._finish(self._triton.InferenceResponse(error=kinds(error_text(code, message), kind)))

    def confirm_stop(self) -> None:
        """Answer a request that only asked to end others."""
        tensors = [self._strings("text_output", [""]), self._strings("finish_reason", ["cancelled"])]
        self._finish(self._triton.InferenceResponse(output_tensors=tensors))

    def tell_pages(self, page_map: str) -> None:
        """Answer a request that only asked who holds which page."""
        self._finish(self._triton.InferenceResponse(output_tensors=[self._strings("page_map", [page_map])]))

    def _send(self, answers: Sequence[_Answer]) -> None:
        chunks = [answer.held for answer in answers if answer.held is not None]
        tensors = [
            self._strings("text_output", [chunk.text for chunk in chunks]),
            self._counts("index", [chunk.index for chunk in chunks]),
            self._counts("prompt_tokens", [chunks[0].prompt_tokens]),
            self._counts("cached_tokens", [chunk.cached_tokens for chunk in chunks]),
            self._counts("completion_tokens", [chunk.completion_tokens for chunk in chunks]),
            self._counts("output_ids", [token for chunk in chunks for token in chunk.token_ids]),
        ]
        if all(answer.ended for answer in answers):
            if self._returns.finish_reason:
                tensors.append(self._strings("finish_reason", [chunk.finish_reason or "" for chunk in chunks]))
            if self._returns.stop_reason:
                tensors.append(self._strings("stop_reason", [chunk.stop_reason or "" for chunk in chunks]))
        tensors += self._logprobs(answers, chunks)
        for answer in answers:
            answer.held = None
        response = self._triton.InferenceResponse(output_tensors=tensors)
        if self.ended:
            self._finish(response)
        else:
            self._sender.send(response)

    def _logprobs(self, answers: Sequence[_Answer], chunks: Sequence[Chunk]) -> list[Any]:
        """Outputs about probabilities; none when the request did not ask for any."""
        if all(chunk.logprobs is None for chunk in chunks):
            return []
        tokens = [chunk.logprobs or [] for chunk in chunks]
        sums = [answer.logprob for answer in answers]
        tensors = []
        if self._returns.logprobs:
            tensors.append(self._strings("logprobs", [msgspec.json.encode(each).decode() for each in tokens]))
        if self._returns.cumulative_logprob:
            tensors.append(self._numbers("cumulative_logprob", sums))
        if self._returns.log_probs:
            tensors.append(self._numbers("cum_log_probs", sums))
            tensors.append(self._numbers("output_log_probs", [token.logprob for each in tokens for token in each]))
        return tensors

    def _finish(self, response: Any) -> None:
        """Send the last response. Triton crashes when a sender is asked anything after that, or meanwhile."""
        with self._ending:
            self._finished = True
            self._sender.send(response, flags=self._triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _strings(self, name: str, texts: Sequence[str]) -> Any:
        return self._triton.Tensor(name, np.array([text.encode() for text in texts], dtype=np.object_))

    def _counts(self, name: str, values: Sequence[int]) -> Any:
        return self._triton.Tensor(name, np.array(values, dtype=np.int32))

    def _numbers(self, name: str, values: Sequence[float]) -> Any:
        return self._triton.Tensor(name, np.array(values, dtype=np.float32))
