"""Talks to one model on Triton over gRPC: one stream per request, so that each can be ended alone."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from http import HTTPStatus
from typing import Any

import grpc
import httpx
from tritonclient.grpc.aio import InferenceServerClient
from tritonclient.utils import InferenceServerException

from ..triton.encode import encode_inputs
from .errors import ApiError, api_error_from_triton
from .generation import GenerationOptions, Generator, Piece
from .readiness import engine_problem
from .request_ids import SESSION_AFFINITY
from .result_stream import ResultStream
from .triton_tensors import input_values, pieces_of

__all__ = ["GenerationOptions", "Generator", "Piece", "TritonClient"]

_ANSWER_TIMEOUT_S = 2.0
_PAGES_TIMEOUT_S = 5.0
"""A step may take a while, and it is answered between two."""
_PAGES_GIVEN_UP_S = 60.0
"""Longer than who asks waits, so that an engine with a long step is asked once; then its stream is thought lost."""
_CHANNEL = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),  # Triton is on this machine; a proxy in the environment is for other traffic
]
_STOP_PERIOD_S = 0.5
_MOST_STOPS = 20
_NOT_LOADED = "Request for unknown model"


class TritonClient:
    """Must be made inside the event loop that uses it.

    A client that leaves is told to Triton by a ``stop`` request, not by cancelling its stream (see
    :mod:`roundhouse.serve.openai.result_stream`).

    Args:
        url: ``host:port`` of Triton's gRPC endpoint.
        model: the model's name there.
        metrics_url: Triton's metrics.
    """

    def __init__(self, url: str, model: str, metrics_url: str) -> None:
        self._model = model
        self._metrics_url = metrics_url
        self._http = httpx.AsyncClient(timeout=_ANSWER_TIMEOUT_S, trust_env=False)
        self._client = InferenceServerClient(url, channel_args=_CHANNEL)
        self._leaving: set[asyncio.Task[None]] = set()
        self._asking_pages: asyncio.Task[bytes] | None = None
        self._closed = False

    async def problem(self) -> str | None:
        """Why requests should not be sent now: Triton, the model or the engine process behind it is not ready."""
        try:
            ready = await self._client.is_model_ready(self._model, client_timeout=_ANSWER_TIMEOUT_S)
            metrics = await self._http.get(self._metrics_url)
        except (InferenceServerException, grpc.RpcError, httpx.HTTPError):
            return "Triton does not answer"
        if not ready or metrics.status_code != HTTPStatus.OK:
            return f"the model {self._model} is not loaded in Triton"
        return engine_problem(metrics.text, self._model, time.time())

    async def generate(
        self, prompt: str | list[int], options: GenerationOptions, *, streaming: bool
    ) -> AsyncGenerator[Piece, None]:
        """Yield all answers piece by piece, or each in one piece. Closing the generator ends the request.

        Raises:
            ApiError: as Triton reports it.
        """
        # Ids may repeat, and stopping one request must not stop another.
        request_id = f"{options.request_id}-{uuid.uuid4().hex}"
        results = self._ask(input_values(prompt, options, streaming), request_id, options.session_affinity)
        problem: ApiError | None = None
        ended, unfinished = False, options.sampling.n
        try:
            async for result, error in results:
                if error is not None:
                    problem = problem or self._error(error.message())
                elif problem is None:
                    for piece in pieces_of(result):
                        unfinished -= piece.finish_reason is not None
                        yield piece
            ended = True
        finally:
            if not ended:
                self._leave(results, request_id)
        if problem is not None:
            raise problem
        if unfinished:
            raise ApiError(503, "Triton ended the stream before the answer was complete", code="unavailable")

    async def pages(self) -> bytes:
        """Who holds each KV page now, as JSON. Whoever asks while that is being asked gets the same answer.

        Raises:
            ApiError: the engine does not say, or not in time: it speaks between two steps.
        """
        if self._asking_pages is None or self._asking_pages.done():
            self._asking_pages = asyncio.ensure_future(self._ask_pages())
            self._asking_pages.add_done_callback(_seen)  # it may end when nobody waits any more
        try:
            # Nobody's leaving ends the question: the others wait for it, and its stream is read to its end.
            return await asyncio.wait_for(asyncio.shield(self._asking_pages), _PAGES_TIMEOUT_S)
        except TimeoutError:
            raise _unsaid(_PAGES_TIMEOUT_S) from None

    async def close(self) -> None:
        """Close the connection. Requests that were left get a moment to end."""
        self._closed = True
        if self._asking_pages is not None:
            self._asking_pages.cancel()
        if self._leaving:
            _, pending = await asyncio.wait(self._leaving, timeout=_ANSWER_TIMEOUT_S)
            for task in pending:
                task.cancel()
        await self._http.aclose()
        await self._client.close()

    async def _ask_pages(self) -> bytes:
        told: bytes | ApiError = ApiError(503, "Triton ended the stream before the answer", code="unavailable")
        results = self._ask({"pages": True}, "pages")
        try:
            async with asyncio.timeout(_PAGES_GIVEN_UP_S):
                async for result, error in results:
                    told = bytes(result.as_numpy("page_map")[0]) if error is None else self._error(error.message())
        except TimeoutError:
            results.cancel()
            told = _unsaid(_PAGES_GIVEN_UP_S)
        if isinstance(told, ApiError):
            raise told
        return told

    def _ask(self, values: dict[str, Any], request_id: str, session: str = "") -> ResultStream:
        request = {"model_name": self._model, "inputs": encode_inputs(values), "request_id": request_id}
        headers = {SESSION_AFFINITY: session} if session else None
        return ResultStream(self._client.stream_infer(_one(request), headers=headers))

    def _leave(self, results: ResultStream, request_id: str) -> None:
        """End a request that nobody waits for, without making anybody wait for that."""
        if self._closed:  # nothing can be asked any more
            results.cancel()
            return
        task = asyncio.ensure_future(self._stop(results, request_id))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _stop(self, results: ResultStream, request_id: str) -> None:
        """Ask for the end until it has come: the first time may be before the request is there at all."""
        try:
            for _ in range(_MOST_STOPS):
                asking = self._ask({"stop": True}, request_id)
                if await results.ended(_STOP_PERIOD_S) and await asking.ended(_STOP_PERIOD_S):
                    return
        finally:
            results.cancel()

    def _error(self, message: str) -> ApiError:
        if _NOT_LOADED in message:
            return ApiError(503, f"the model {self._model} is not loaded in Triton", code="unavailable")
        return api_error_from_triton(message)


async def _one(request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield request


def _unsaid(seconds: float) -> ApiError:
    return ApiError(503, f"the engine has not said within {seconds:.0f} s who holds its pages", code="unavailable")


def _seen(task: asyncio.Task[bytes]) -> None:
    """Take note of how a task ended: an error that nobody has seen is logged by asyncio as a fault of ours."""
    if not task.cancelled():
        task.exception()
