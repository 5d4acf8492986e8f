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
from functools import partial
from pathlib import Path
from typing import Any

from roundhouse.errors import RequestCode, RequestError, ServeError

from ..engine.page_holders import PageHolders
from ..engine.request import Output, Request
from ..engine.status import Status
from ..process.client import EngineProcess
from ..process.messages import Ready
from .health import DOWN, UNGUARDED, TokenWatch
from .metrics import EngineMetrics
from .page_answer import page_map_json
from .replies import Reply
from .repository import ENGINE_KEY, OVERRIDES_KEY, PYTHON_KEY
from .tensors import ParsedRequest, parse_parameters, parse_request

__all__ = ["TritonPythonModel"]

_CANCEL_POLL_S = 0.1


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
        self._metrics = EngineMetrics(self._triton, args["model_name"])
        self._watch = TokenWatch()
        self._live: dict[str, Reply] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        try:
            self._engine = EngineProcess(
                Path(settings[ENGINE_KEY]),
                python=settings[PYTHON_KEY],
                overrides_json=settings[OVERRIDES_KEY],
                on_state=self._take_state,
                on_status=self._take_status,
                on_log=_log,
            )
            self._engine.start()
        except ServeError as error:
            self._metrics.close()
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
        self._watcher.join()
        self._metrics.close()

    def _accept(self, request: Any) -> None:
        """Hand one request over, or answer why not."""
        sender = request.get_response_sender()
        try:
            parsed = self._parse(request)
            if parsed.cancel:
                self._cancel_all(request.request_id())
                Reply(self._triton, sender, streaming=False).confirm_stop()
            elif parsed.pages:
                self._engine.ask_pages(partial(self._tell_pages, Reply(self._triton, sender, streaming=False)))
            else:
                self._submit(parsed, self._reply(parsed, request.request_id(), sender))
        except Exception as error:
            Reply(self._triton, sender, streaming=False).fail(*_reason(error))

    def _parse(self, request: Any) -> ParsedRequest:
        tensors = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        return parse_request(tensors, parse_parameters(request.parameters()))

    def _reply(self, parsed: ParsedRequest, client_id: str, sender: Any) -> Reply:
        return Reply(
            self._triton,
            sender,
            streaming=parsed.streaming,
            client_id=client_id,
            answers=parsed.sampling.n,
            returns=parsed.returns,
        )

    def _submit(self, parsed: ParsedRequest, reply: Reply) -> None:
        if problem := self._watch.problem():
            # A step that was not checked is not made good by waiting.
            raise RequestError("unavailable", problem if problem == UNGUARDED else f"{problem}; try again in a moment")
        # The client's request id may be empty or repeat, so requests carry one of their own inside.
        request_id = uuid.uuid4().hex
        request = Request(
            request_id=request_id,
            prompt=parsed.prompt,
            prompt_ids=parsed.prompt_ids,
            sampling=parsed.sampling,
            cache_salt=parsed.cache_salt,
            priority=parsed.priority,
            deadline_s=parsed.deadline_s,
        )
        with self._lock:
            self._live[request_id] = reply
        try:
            self._engine.submit(request, self._take)
        except Exception:
            with self._lock:
                self._live.pop(request_id, None)
            raise

    def _cancel_all(self, client_id: str) -> None:
        """End every live request that the client gave this id; each gets its own answer."""
        if not client_id:
            raise RequestError("invalid_request", "stop needs a request id: that of the requests to end")
        with self._lock:
            found = [request_id for request_id, reply in self._live.items() if reply.client_id == client_id]
        for request_id in found:
            self._engine.cancel(request_id)

    def _tell_pages(self, reply: Reply, holders: PageHolders | None) -> None:
        """Answer whoever asked about pages."""
        if holders is None:
            reply.fail("unavailable", f"{DOWN}; try again in a moment")
            return
        with self._lock:
            client_ids = {request_id: live.client_id for request_id, live in self._live.items()}
        try:
            told = page_map_json(holders, client_ids)
        except Exception as error:  # a request without an answer would keep the model from unloading
            reply.fail(*_reason(error))
        else:
            reply.tell_pages(told)

    def _take(self, output: Output) -> None:
        with self._lock:
            reply = self._live.get(output.request_id)
        if reply is None:
            return
        try:
            reply.take(output)
        except Exception as error:  # often the client went away between two polls
            _log(f"a response could not be sent: {error!r}")
            if reply.ended:
                with contextlib.suppress(Exception):  # whatever it is, nobody is left to be told
                    reply.fail(*_reason(error))
            else:
                self._engine.cancel(output.request_id)
        if reply.ended:
            with self._lock:
                self._live.pop(output.request_id, None)

    def _take_state(self, ready: Ready | None) -> None:
        if ready is None:
            self._watch.end()
        else:
            self._watch.begin(ready.guard)
        self._metrics.set_up(ready is not None)

    def _take_status(self, status: Status) -> None:
        self._watch.take(status)
        self._metrics.update(status, stuck=self._watch.stuck, unguarded=self._watch.unguarded)

    def _watch_cancelled(self) -> None:
        """Tell the engine about clients that went away, so that it stops and takes its pages back."""
        told: set[str] = set()
        while not self._stopping.wait(_CANCEL_POLL_S):
            self._cancel_gone(told)

    def _cancel_gone(self, told: set[str]) -> None:
        """Cancel requests whose clients have gone and that are not in ``told`` yet.

        A method of its own: a sender that a variable still holds while nothing happens would keep the model from unloading.
        """
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
