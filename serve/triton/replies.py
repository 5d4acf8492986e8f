"""From the engine's outputs to Triton responses, for one request.

``triton`` is Triton's ``triton_python_backend_utils``, which only exists inside the stub.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.request import Chunk, Failure, Output

__all__ = ["Reply", "error_text"]


def error_text(code: str, message: str) -> str:
    """How an error reads to a client: gRPC streams carry only a text, so the code stands in front of it."""
    return f"[{code}] {message}"


class Reply:
    """Answers one request through Triton's decoupled sender.

    Args:
        triton: the ``triton_python_backend_utils`` module.
        sender: the request's response sender.
        streaming: whether to answer piece by piece, or once with the whole text.
    """

    def __init__(self, triton: Any, sender: Any, *, streaming: bool) -> None:
        self._triton = triton
        self._sender = sender
        self._streaming = streaming
        self._held: list[str] = []

    @property
    def cancelled(self) -> bool:
        """Whether the client has gone."""
        return bool(self._sender.is_cancelled())

    def take(self, output: Output) -> None:
        """Send what this output calls for; the last one ends the request."""
        if isinstance(output, Failure):
            self.fail(output.code, output.message)
            return
        self._held.append(output.text)
        if output.finish_reason == "cancelled":
            self.fail("cancelled", "the client cancelled the request")
        elif output.finish_reason is not None:
            self._send(output, last=True)
        elif self._streaming and any(self._held):
            self._send(output, last=False)

    def fail(self, code: str, message: str) -> None:
        """End the request with an error."""
        kinds = self._triton.TritonError
        kind = {
            "invalid_request": kinds.INVALID_ARG,
            "unavailable": kinds.UNAVAILABLE,
            "cancelled": kinds.CANCELLED,
        }.get(code, kinds.INTERNAL)
        error = kinds(error_text(code, message), kind)
        self._finish(self._triton.InferenceResponse(error=error))

    def _send(self, chunk: Chunk, *, last: bool) -> None:
        text, self._held = "".join(self._held), []
        tensors = [
            self._strings("text_output", text),
            self._count("prompt_tokens", chunk.prompt_tokens),
            self._count("completion_tokens", chunk.completion_tokens),
        ]
        if last:
            tensors.append(self._strings("finish_reason", chunk.finish_reason or ""))
            tensors.append(self._strings("stop_reason", chunk.stop_reason or ""))
        response = self._triton.InferenceResponse(output_tensors=tensors)
        if last:
            self._finish(response)
        else:
            self._sender.send(response)

    def _finish(self, response: Any) -> None:
        self._sender.send(response, flags=self._triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _strings(self, name: str, text: str) -> Any:
        return self._triton.Tensor(name, np.array([text.encode()], dtype=np.object_))

    def _count(self, name: str, value: int) -> Any:
        return self._triton.Tensor(name, np.array([value], dtype=np.int32))
