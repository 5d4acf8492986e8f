"""The model that Triton's Python stub runs: thin, it only translates.

``execute`` hands each request to the engine process and returns at once; responses leave from the
thread that receives the engine's outputs; one more thread notices clients that went away. Neither
torch nor an engine lives in this process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

from roundhouse.errors import RequestCode, RequestError, ServeError

from ..engine.request import Chunk, Output, Request
from ..process.client import EngineProcess
from .metrics import EngineMetrics
from .replies import Reply
from .repository import ENGINE_KEY, OVERRIDES_KEY, PYTHON_KEY
from .tensors import ParsedRequest, parse_parameters, parse_request

__all__ = ["TritonPythonModel"]

_CANCEL_POLL_S = 0.05


class TritonPythonModel:
    """The interface that Triton's Python backend calls."""

    def initialize(self, args: dict[str, str]) -> None:
        """Start the engine process and wait until it is ready.

        Args:
            args: what Triton passes; ``model_config`` is the JSON of ``config.pbtxt``.
        """
        self._triton: Any = importlib.import_module("triton_python_backend_utils")
        parameters = json.loads(args["model_config"])["parameters"]
        settings = {key: value["string_value"] for key, value in parameters.items()}
        metrics = EngineMetrics(self._triton, args["model_name"])
        self._live: dict[str, Reply] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._engine = EngineProcess(
            Path(settings[ENGINE_KEY]),
            python=settings[PYTHON_KEY],
            overrides_json=settings[OVERRIDES_KEY],
            on_state=metrics.set_up,
            on_status=metrics.update,
            on_log=_log,
        )
        try:
            self._engine.start()
        except ServeError as error:
            raise self._triton.TritonModelException(error.message) from None
        self._watcher = threading.Thread(target=self._watch_cancelled, name="cancel-watch", daemon=True)
        self._watcher.start()

    def execute(self, requests: list[Any]) -> None:
        """Queue a batch of requests; all responses are sent later, through each request's sender."""
        for request in requests:
            try:
                self._accept(request)
            except Exception as error:  # not even its failure could be sent; the rest of the batch must not pay
                _log(f"a request could not be answered: {error!r}")

    def finalize(self) -> None:
        """Stop the engine process; Triton calls this when it unloads the model."""
        self._stopping.set()
        self._engine.stop()

    def _accept(self, request: Any) -> None:
        """Hand one request over, or answer why not."""
        sender = request.get_response_sender()
        try:
            parsed = self._parse(request)
            self._submit(parsed, Reply(self._triton, sender, streaming=parsed.streaming))
        except Exception as error:
            Reply(self._triton, sender, streaming=False).fail(*_reason(error))

    def _parse(self, request: Any) -> ParsedRequest:
        tensors = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        return parse_request(tensors, parse_parameters(request.parameters()))

    def _submit(self, parsed: ParsedRequest, reply: Reply) -> None:
        # The client's request id may be empty or repeat, so requests carry one of their own inside.
        request_id = uuid.uuid4().hex
        with self._lock:
            self._live[request_id] = reply
        request = Request(request_id=request_id, prompt=parsed.prompt, prompt_ids=parsed.prompt_ids, sampling=parsed.sampling)
        try:
            self._engine.submit(request, self._take)
        except Exception:
            with self._lock:
                self._live.pop(request_id, None)
            raise

    def _take(self, output: Output) -> None:
        last = not isinstance(output, Chunk) or output.finish_reason is not None
        with self._lock:
            reply = self._live.pop(output.request_id, None) if last else self._live.get(output.request_id)
        if reply is None:
            return
        try:
            reply.take(output)
        except Exception as error:  # often the client went away between two polls
            _log(f"a response could not be sent: {error!r}")
            if last:
                with contextlib.suppress(self._triton.TritonModelException):
                    reply.fail(*_reason(error))
            else:
                self._engine.cancel(output.request_id)

    def _watch_cancelled(self) -> None:
        """Tell the engine about clients that went away, so that it stops and takes its pages back."""
        told: set[str] = set()
        while not self._stopping.wait(_CANCEL_POLL_S):
            with self._lock:
                live = list(self._live.items())
            told &= {request_id for request_id, _ in live}
            for request_id, reply in live:
                try:
                    if request_id not in told and reply.cancelled and self._engine.cancel(request_id):
                        told.add(request_id)
                except Exception as error:  # the others must still be watched
                    told.add(request_id)
                    _log(f"a request can no longer be watched: {error!r}")


def _reason(error: Exception) -> tuple[RequestCode, str]:
    """The code and the message that a client gets."""
    if isinstance(error, RequestError):
        return error.code, error.message
    return "internal", f"the request could not be served: {error!r}"


def _log(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # a log that is closed must not fail a request
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
