"""A deployment: one engine behind a Triton server, with the OpenAI front before it.

:class:`Deployment` is the whole as a context manager; :func:`run_deployment` serves until it is told
to stop. Nothing is left when either ends: no process, no folder, no shared memory.
"""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from roundhouse.build.engine import Engine
from roundhouse.build.hardware import this_machine
from roundhouse.build.home import Home
from roundhouse.errors import ServeError

from .addresses import Endpoints, Ports
from .leftovers import owned_name, remove_leftovers
from .openai.app import create_app
from .openai.chat import load_chat_template
from .openai.server import FrontServer
from .openai.triton_client import TritonClient
from .settings import EngineSettings, Overrides
from .triton.locate import TritonInstall, find_triton
from .triton.ports import TritonPorts
from .triton.repository import write_repository
from .triton.server import TritonServer

__all__ = ["Deployment", "Endpoints", "Ports", "run_deployment"]

_WATCH_PERIOD_S = 0.5
_PLAIN_PATH = re.compile(r"[\w./+-]+")
_EVERYWHERE, _LOOPBACK = "0.0.0.0", "127.0.0.1"


class Deployment:
    """One engine being served. As a context manager it is ready on entry and gone on exit.

    Args:
        engine: what to serve.
        home: its cache holds the Triton backend that is laid out on first use.
        ports: where to listen.
        overrides: what to change of the engine's recipe.
        on_log: gets each line of Triton's log, from a thread of its own.
    """

    def __init__(
        self,
        engine: Engine,
        home: Home,
        *,
        ports: Ports | None = None,
        overrides: Overrides | None = None,
        on_log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._home = home
        self._ports = ports or Ports()
        self._overrides = overrides or Overrides()
        self._on_log = on_log
        self._folder: Path | None = None
        self._triton: TritonServer | None = None
        self._front: FrontServer | None = None
        self._endpoints: Endpoints | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def endpoints(self) -> Endpoints:
        """Where it answers.

        Raises:
            ServeError: it is not running.
        """
        if self._endpoints is None:
            raise ServeError("the deployment is not running")
        return self._endpoints

    def start(self, stop: threading.Event | None = None) -> bool:
        """Start everything and wait until it answers. What had started is closed again when this fails.

        Args:
            stop: give up when this is set.

        Returns:
            Whether it is ready; False only when ``stop`` was set.

        Raises:
            SetupError: there is no usable Triton.
            UsageError: the engine cannot run with these overrides on this machine.
            ServeError: a port is taken, or Triton or the engine process could not start.
        """
        try:
            self._endpoints = self._start(stop or threading.Event())
        except BaseException:
            self.close()
            raise
        if self._endpoints is None:
            self.close()
        return self._endpoints is not None

    def require_running(self) -> None:
        """Raise when Triton has ended by itself.

        Raises:
            ServeError: with its last log lines.
        """
        if self._triton is not None:
            self._triton.require_running()

    def close(self) -> None:
        """Stop everything, the front first so that no request meets a closed door. May be called twice."""
        with ExitStack() as closing:  # runs backwards, and to its end whatever fails on the way
            if self._folder is not None:
                closing.callback(shutil.rmtree, self._folder, ignore_errors=True)
            if self._triton is not None:
                closing.callback(self._triton.stop)
            if self._front is not None:
                closing.callback(self._front.stop)
            self._endpoints, self._front, self._triton, self._folder = None, None, None, None

    def _start(self, stop: threading.Event) -> Endpoints | None:
        # What cannot work is said before anything starts, in a line of ours instead of Triton's log.
        EngineSettings.for_engine(self._engine, self._overrides, free_memory=this_machine().free_memory)
        install = find_triton(self._home.cache)
        self._folder = _private_folder()
        install = _without_odd_path(install, self._folder)
        repository = self._folder / "models"
        model = write_repository(repository, self._engine, overrides=self._overrides)
        wanted, host = self._ports, self._ports.host
        reachable = _LOOPBACK if host == _EVERYWHERE else host
        triton = TritonServer(
            install,
            repository,
            model,
            host=host,
            ports=TritonPorts(http=wanted.http, grpc=wanted.grpc, metrics=wanted.metrics),
            scratch=self._folder,
            on_log=self._on_log,
        )
        self._triton = triton
        chat = self._engine.manifest.chat
        template = load_chat_template(self._engine.checkpoint, chat=chat)

        def connect() -> TritonClient:
            return TritonClient(f"{reachable}:{triton.ports.grpc}", model, _metrics_url(reachable, triton.ports))

        app = create_app(model, template, connect)
        self._front = FrontServer(app, host=host, port=wanted.openai)  # a taken port shows before Triton starts
        if not triton.start(stop):
            return None
        self._front.start()
        ports = triton.ports
        return Endpoints(
            model=model,
            http=f"http://{reachable}:{ports.http}",
            grpc=f"{reachable}:{ports.grpc}",
            metrics=_metrics_url(reachable, ports),
            openai=f"http://{reachable}:{self._front.port}/v1",
            chat=chat,
        )


def run_deployment(
    engine: Engine,
    home: Home,
    *,
    ports: Ports | None = None,
    overrides: Overrides | None = None,
    on_ready: Callable[[Endpoints], None],
    on_log: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP (a closed terminal), then return. Must be called from the main thread.

    Args:
        engine: what to serve.
        home: as for :class:`Deployment`.
        ports: where to listen.
        overrides: what to change of the engine's recipe.
        on_ready: called once, when everything answers.
        on_log: gets each line of Triton's log, from a thread of its own.

    Raises:
        SetupError: there is no usable Triton.
        ServeError: as :meth:`Deployment.start`, or Triton ended by itself.
    """
    deployment = Deployment(engine, home, ports=ports, overrides=overrides, on_log=on_log)
    with _stop_signals() as stop:
        try:
            if deployment.start(stop):
                on_ready(deployment.endpoints)
            while not stop.wait(_WATCH_PERIOD_S):
                deployment.require_running()
        finally:
            deployment.close()


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C, SIGTERM and SIGHUP set, instead of what they did before. ``nohup`` is respected."""
    stop = threading.Event()
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _metrics_url(host: str, ports: TritonPorts) -> str:
    return f"http://{host}:{ports.metrics}/metrics"


def _without_odd_path(install: TritonInstall, folder: Path) -> TritonInstall:
    """Reach the backends by a link in ``folder``: Triton starts its stub through a shell, without quoting its path."""
    link = folder / "backends"
    link.symlink_to(install.backend_directory, target_is_directory=True)
    return replace(install, backend_directory=link)


def _private_folder() -> Path:
    """A folder only for this deployment; those of killed ones are removed on the way.

    Raises:
        ServeError: its path has characters that Triton would pass to a shell as they are.
    """
    temporary = Path(tempfile.gettempdir())
    if not _PLAIN_PATH.fullmatch(str(temporary)):
        hint = "Set TMPDIR to a folder whose path has letters, digits and . _ - / only."
        raise ServeError(f"Triton cannot start from {temporary}", hint=hint)
    remove_leftovers(temporary)
    folder = temporary / owned_name()
    folder.mkdir(mode=0o700)
    return folder
