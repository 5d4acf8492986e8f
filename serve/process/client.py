"""The owner of an engine process: starts it, hands it requests, restarts it when it dies.

Lives in Triton's Python stub, so it imports neither torch nor transformers.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from roundhouse.errors import ServeError

from ..engine.page_holders import PageHolders
from ..engine.request import Failure, Output, Request
from ..engine.status import Status
from ..runtimes.tensorrt_llm.launch import launch_words
from .connection import EngineConnection
from .live import LiveRequests, OnOutput
from .messages import Cancel, FromEngine, Outputs, Pages, Ready
from .pacing import Pacer
from .starting import LONGEST_DELAY_S, EngineStarter

__all__ = ["EngineProcess", "OnPages"]

_POLL_S = 0.1

OnPages = Callable[[PageHolders | None], None]
"""Gets who holds which page, or None when there is no process to say it."""

T = TypeVar("T")


class EngineProcess:
    """One engine, kept running.

    Args:
        engine: the engine folder.
        python: the interpreter that has torch; by default this one.
        overrides_json: what to change of the engine's recipe, as a JSON object.
        on_state: told what the process says of itself when it takes requests, and None when it is gone.
        on_status: gets each status report, from the receiving thread.
        on_log: gets each line that the engine process prints, and notes about restarts.
    """

    def __init__(
        self,
        engine: Path,
        *,
        python: str = sys.executable,
        overrides_json: str = "{}",
        on_state: Callable[[Ready | None], None] = lambda _: None,
        on_status: Callable[[Status], None] = lambda _: None,
        on_log: Callable[[str], None] = lambda _: None,
    ) -> None:
        main = ["-m", "roundhouse.serve.process.main", "--engine", str(engine), "--settings", overrides_json]
        command = [*launch_words(engine, python), *main]
        self._on_state = on_state
        self._on_status = on_status
        self._on_log = on_log
        self._lock = threading.Lock()
        self._live = LiveRequests()
        self._asking_pages: list[OnPages] = []
        self._connection: EngineConnection | None = None
        """The process that takes requests; None while there is none."""
        self._stopping = threading.Event()
        self._starter = EngineStarter(command, self._stopping, self._log)
        self._receiver: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the engine process, or None while it is down."""
        with self._lock:
            return self._connection.pid if self._connection else None

    def start(self) -> Ready:
        """Start the process and wait until it takes requests.

        Raises:
            ServeError: it could not be run, or ended before that; the message holds its last line.
        """
        try:
            connection, ready = self._starter.start()
        except ServeError:
            self._starter.remove()
            raise
        self._attach(connection, ready)
        self._receiver = threading.Thread(target=self._keep_running, args=(connection,), name="engine-receiver", daemon=True)
        self._receiver.start()
        return ready

    def submit(self, request: Request, on_output: OnOutput) -> None:
        """Hand over a request. ``on_output`` gets its outputs: a failure ends it, or the finish reason of its last answer.

        It is called from the receiving thread, or from the caller's when the engine is down. Under load it gets fewer and
        longer chunks (see :mod:`roundhouse.serve.process.pacing`). When it raises, the request is cancelled, and its further
        outputs still come.
        """
        with self._lock:
            connection = self._connection
            if connection is not None:
                connection.send(request)  # first: a request that cannot be encoded must not count as live
                self._live.add(request, on_output)
                return
        on_output(_unavailable(request.request_id, "the engine process is down and being restarted; try again in a moment"))

    def cancel(self, request_id: str) -> bool:
        """End a request. Its last output still comes.

        Returns:
            Whether it was passed on; an id that is unknown (yet, or any more) is ignored.
        """
        with self._lock:
            if self._connection is None or request_id not in self._live:
                return False
            self._connection.send(Cancel(request_id=request_id))
            return True

    def ask_pages(self, on_pages: OnPages) -> None:
        """Ask who holds which page; ``on_pages`` is called once, from the receiving thread or, when the engine is down, here.

        One question is under way at a time: whoever asks meanwhile gets the same answer.
        """
        with self._lock:
            if self._connection is not None:
                self._asking_pages.append(on_pages)
                if len(self._asking_pages) == 1:
                    self._connection.send(Pages())
                return
        on_pages(None)

    def stop(self, grace_s: float = 5.0) -> None:
        """End the process, fail what was live and remove the sockets. May be called more than once."""
        self._stopping.set()
        with self._lock:
            connection = self._connection
        if connection is not None:
            connection.end()
        if self._receiver is not None and self._receiver is not threading.current_thread():
            self._receiver.join(timeout=grace_s + 1.0)
        self._starter.remove()

    def _keep_running(self, connection: EngineConnection) -> None:
        """Receive, and start the process again whenever it ends, until the owner stops. Whatever fails here is told.

        Requests that nobody receives for would wait for ever, and keep the model from unloading.
        """
        try:
            self._serve(connection)
        except Exception as error:
            self._log(f"outputs can no longer be received: {error!r}")
            with self._lock:
                current = self._connection
            if current is not None:
                self._detach(current)

    def _serve(self, connection: EngineConnection) -> None:
        deaths = 0
        while True:
            started = time.monotonic()
            self._dispatch_until_death(connection)
            self._detach(connection)
            deaths = 1 if time.monotonic() - started > LONGEST_DELAY_S else deaths + 1
            restarted = self._starter.start_again(deaths)
            if restarted is None:
                return
            connection, ready = restarted
            self._attach(connection, ready)

    def _dispatch_until_death(self, connection: EngineConnection) -> None:
        pacer = Pacer()
        while True:
            wait = pacer.wait_s(_POLL_S)
            try:
                messages = connection.receive(wait)
            except ServeError as error:
                self._log(error.message)
                break
            if not messages and wait == _POLL_S and (self._stopping.is_set() or not connection.alive):
                break
            for message in messages:
                if isinstance(message, Outputs):
                    pacer.add(message.outputs)
            with self._lock:
                live = len(self._live)
            for output in pacer.take(live):
                self._dispatch(output)
            self._take_reports(messages)
        for output in pacer.take_all():
            self._dispatch(output)

    def _take_reports(self, messages: Sequence[FromEngine]) -> None:
        """Pass on the last of each kind among these messages; the counters of earlier status reports are in it."""
        status = next((message for message in reversed(messages) if isinstance(message, Status)), None)
        if status is not None:
            self._guarded(self._on_status, status, "a status report")
        holders = next((message for message in reversed(messages) if isinstance(message, PageHolders)), None)
        if holders is not None:
            self._tell_pages(holders)

    def _tell_pages(self, holders: PageHolders | None) -> None:
        with self._lock:
            asking, self._asking_pages = self._asking_pages, []
        for on_pages in asking:
            self._guarded(on_pages, holders, "an answer about pages")

    def _dispatch(self, output: Output) -> None:
        with self._lock:
            on_output = self._live.receiver(output)
        if on_output is not None and not self._guarded(on_output, output, f"an output of request {output.request_id}"):
            self.cancel(output.request_id)

    def _guarded(self, callback: Callable[[T], None], value: T, what: str) -> bool:
        """Call back, and say whether that worked: whatever it raises, the others must still be served."""
        try:
            callback(value)
        except Exception as error:
            self._log(f"{what} could not be taken: {error!r}")
            return False
        return True

    def _log(self, line: str) -> None:
        with contextlib.suppress(Exception):  # there is nowhere left to say it
            self._on_log(line)

    def _attach(self, connection: EngineConnection, ready: Ready) -> None:
        with self._lock:
            self._connection = connection
        self._guarded(self._on_state, ready, "the engine's state")

    def _detach(self, connection: EngineConnection) -> None:
        """Take a dead process out of use; every request it held fails."""
        with self._lock:
            self._connection = None
            lost = self._live.clear()
        self._guarded(self._on_state, None, "the engine's state")
        self._tell_pages(None)
        connection.close(grace_s=5.0)
        why = "the server is stopping" if self._stopping.is_set() else "the engine process ended while it served this request"
        for request_id, on_output in lost.items():
            self._guarded(on_output, _unavailable(request_id, why), f"the failure of request {request_id}")


def _unavailable(request_id: str, message: str) -> Failure:
    return Failure(request_id=request_id, code="unavailable", message=message)
