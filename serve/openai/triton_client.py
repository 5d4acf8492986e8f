"""Talks to one model on Triton over gRPC: one stream per request, so that each can be cancelled alone."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

import grpc
import httpx
import numpy as np
from tritonclient.grpc import InferInput
from tritonclient.grpc.aio import InferenceServerClient
from tritonclient.utils import InferenceServerException

from ..engine.request import SamplingParams
from ..triton.contract import SAMPLING_PREFIX
from .errors import ApiError, api_error_from_triton
from .readiness import engine_problem

__all__ = ["Generator", "Piece", "TritonClient"]

_ANSWER_TIMEOUT_S = 2.0
_CHANNEL = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),  # Triton is on this machine; a proxy in the environment is for other traffic
]


@dataclass(frozen=True)
class Piece:
    """New text of an answer; ``finish_reason`` is set on the last one only."""

    text: str
    finish_reason: str | None
    prompt_tokens: int
    completion_tokens: int
    """So far."""


class Generator(Protocol):
    """What the front asks for answers."""

    async def problem(self) -> str | None:
        """Why requests should not be sent now, or None when they may."""
        ...

    def generate(self, prompt: str | list[int], sampling: SamplingParams, *, streaming: bool) -> AsyncGenerator[Piece, None]:
        """Yield an answer piece by piece, or in one piece. Closing the generator cancels the request.

        Raises:
            ApiError: the request is wrong, or the answer cannot be given.
        """
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...


class TritonClient:
    """Must be made inside the event loop that uses it.

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

    async def problem(self) -> str | None:
        """Why requests should not be sent now: Triton, the model or the engine process behind it is not ready."""
        try:
            ready = await self._client.is_model_ready(self._model, client_timeout=_ANSWER_TIMEOUT_S)
            metrics = await self._http.get(self._metrics_url)
        except (InferenceServerException, grpc.RpcError, httpx.HTTPError):
            return "Triton does not answer"
        if not ready or metrics.status_code != HTTPStatus.OK:
            return "Triton is not ready"
        return engine_problem(metrics.text, time.time())

    async def generate(
        self, prompt: str | list[int], sampling: SamplingParams, *, streaming: bool
    ) -> AsyncGenerator[Piece, None]:
        """Yield an answer piece by piece, or in one piece. Closing the generator cancels the request.

        Raises:
            ApiError: as Triton reports it.
        """
        calls = self._client.stream_infer(_one({"model_name": self._model, "inputs": _inputs(prompt, sampling, streaming)}))
        ended = finished = False
        try:
            async for result, error in calls:
                if error is not None:
                    raise api_error_from_triton(error.message())
                piece = _piece(result)
                finished = piece.finish_reason is not None
                yield piece
            ended = True
            if not finished:
                raise ApiError(503, "Triton ended the stream before the answer was complete", code="unavailable")
        except grpc.RpcError as error:
            raise ApiError(503, f"Triton does not answer: {_details(error)}", code="unavailable") from None
        finally:
            if not ended:
                calls.cancel()

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()
        await self._client.close()


async def _one(request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield request


def _inputs(prompt: str | list[int], sampling: SamplingParams, streaming: bool) -> list[InferInput]:
    inputs = [
        _strings("text_input", [prompt]) if isinstance(prompt, str) else _tensor("input_ids", prompt, np.int32, "INT32"),
        _tensor("streaming", [streaming], np.bool_, "BOOL"),
        _tensor(SAMPLING_PREFIX + "max_tokens", [sampling.max_tokens], np.int32, "INT32"),
        _tensor(SAMPLING_PREFIX + "temperature", [sampling.temperature], np.float32, "FP32"),
        _tensor(SAMPLING_PREFIX + "top_p", [sampling.top_p], np.float32, "FP32"),
        _tensor(SAMPLING_PREFIX + "top_k", [sampling.top_k], np.int32, "INT32"),
        _tensor(SAMPLING_PREFIX + "ignore_eos", [sampling.ignore_eos], np.bool_, "BOOL"),
    ]
    if sampling.seed is not None:
        inputs.append(_tensor(SAMPLING_PREFIX + "seed", [sampling.seed], np.uint64, "UINT64"))
    if sampling.stop:
        inputs.append(_strings(SAMPLING_PREFIX + "stop", list(sampling.stop)))
    return inputs


def _tensor(name: str, values: list[Any], dtype: type[np.generic], triton_type: str) -> InferInput:
    tensor = InferInput(name, [len(values)], triton_type)
    tensor.set_data_from_numpy(np.array(values, dtype=dtype))
    return tensor


def _strings(name: str, values: list[str]) -> InferInput:
    return _tensor(name, [value.encode() for value in values], np.object_, "BYTES")


def _piece(result: Any) -> Piece:
    def first(name: str) -> Any:
        values = result.as_numpy(name)
        return None if values is None else values[0]

    finish_reason = first("finish_reason")
    return Piece(
        text=first("text_output").decode(),
        finish_reason=None if finish_reason is None else finish_reason.decode(),
        prompt_tokens=int(first("prompt_tokens")),
        completion_tokens=int(first("completion_tokens")),
    )


def _details(error: grpc.RpcError) -> str:
    details = getattr(error, "details", None)
    return str(details()) if callable(details) else str(error)
