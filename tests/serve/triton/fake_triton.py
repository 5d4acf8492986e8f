"""Stands in for ``triton_python_backend_utils``, which only exists inside Triton's stub."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import numpy as np

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1


class TritonModelException(Exception):  # noqa: N818  # Triton's name
    pass


class TritonError:
    INTERNAL, INVALID_ARG, UNAVAILABLE, CANCELLED = "internal", "invalid_arg", "unavailable", "cancelled"

    def __init__(self, message: str, code: str = INTERNAL) -> None:
        self.text = message
        self.kind = code


class Tensor:
    def __init__(self, name: str, values: Any) -> None:
        self._name = name
        self._values = values

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> Any:
        return self._values


class InferenceResponse:
    def __init__(self, output_tensors: list[Tensor] | None = None, error: TritonError | None = None) -> None:
        self.tensors = {tensor.name(): tensor.as_numpy().tolist() for tensor in output_tensors or []}
        self.error = error


class Sender:
    """Collects responses; the last one must come with the final flag, and nothing after it."""

    def __init__(self) -> None:
        self.responses: list[InferenceResponse] = []
        self.final = False
        self.gone = False
        self.broken = False

    def send(self, response: InferenceResponse, flags: int = 0) -> None:
        if self.broken:
            raise TritonModelException("the stub lost its server")
        if self.final:
            raise TritonModelException("sent after the final response")
        self.responses.append(response)
        self.final = flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL

    def is_cancelled(self) -> bool:
        if self.final:
            raise RuntimeError("the real one takes the server down with it")
        if self.broken:
            raise TritonModelException("the stub lost its server")
        return self.gone


class Request:
    def __init__(self, text: str, parameters: str = "{}", streaming: bool = False, request_id: str = "") -> None:
        self.sender = Sender()
        self._parameters = parameters
        self._request_id = request_id
        self._inputs = [
            Tensor("text_input", np.array([text.encode()], dtype=np.object_)),
            Tensor("streaming", np.array([streaming])),
        ]

    def inputs(self) -> list[Tensor]:
        return self._inputs

    def parameters(self) -> str:
        if self._parameters == "broken":
            raise TritonModelException("no parameters")
        return self._parameters

    def request_id(self) -> str:
        return self._request_id

    def get_response_sender(self) -> Sender:
        return self.sender


class Metric:
    def __init__(self) -> None:
        self.value = 0.0

    def increment(self, by: float) -> None:
        if by < 0:
            raise TritonModelException("counters only go up")
        self.value += by

    def set(self, value: float) -> None:
        self.value = value


class MetricFamily:
    COUNTER, GAUGE = "counter", "gauge"
    made: ClassVar[deque[MetricFamily]] = deque(maxlen=64)

    def __init__(self, name: str, description: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self.metrics: dict[str, Metric] = {}
        self.made.append(self)

    def Metric(self, labels: dict[str, str]) -> Metric:  # noqa: N802  # Triton's name
        return self.metrics.setdefault(labels.get("le", ""), Metric())
