"""A deployment: engines behind a Triton server, with the OpenAI front before it.

:class:`Deployment` is the whole as a context manager; :func:`run_deployment` serves until it is told
to stop. Nothing is left when either ends: no process, no folder, no shared memory.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.errors import ServeError

from .addresses import Endpoints, Ports
from .disk import writing
from .free_memory import FreeMemory
from .openai.api_keys import ApiKeys
from .openai.app import create_app
from .openai.chat import load_chat_template
from .openai.served import ServedModel
from .openai.server import GRACE_S, FrontServer
from .openai.tools import ToolForm, form_named
from .openai.triton_client import TritonClient
from .placement import PlacedEngine, place_engines
from .private_folder import private_folder, within_plain_path
from .runtimes import require_runnable
from .settings import Overrides
from .stop_signals import stop_signals
from .triton.control import ModelControl
from .triton.locate import find_triton
from .triton.ports import TritonPorts
from .triton.repository import write_repository
from .triton.server import TritonServer

__all__ = ["Deployment", "Endpoints", "Ports", "run_deployment"]

_WATCH_PERIOD_S = 0.5
_EVERYWHERE, _LOOPBACK = "0.0.0.0", "127.0.0.1"


class Deployment:
    """Engines being served, each by a process of its own. As a context manager it is ready on entry and gone on exit.

    Args:
        engines: what to serve, at least one.
        home: its cache holds the Triton backend that is laid out on first use.
        ports: where to listen.
        names: what each engine is served as; None takes their own names.
        overrides: what to change of each engine's recipe.
        api_keys: who may ask the OpenAI front; None lets everybody.
        tool_form: the name of the form of every engine's tool calls; None reads it from each one's chat template.
        control: whether engines may be unloaded and loaded again while it runs (see :attr:`control`).
        on_log: gets each line of Triton's log, from a thread of its own.

    Raises:
        UsageError: there is no such form of tool calls.
    """

    def __init__(
        self,
        engines: Sequence[Engine],
        home: Home,
        *,
        ports: Ports | None = None,
        names: Sequence[str] | None = None,
        overrides: Overrides | None = None,
        api_keys: ApiKeys | None = None,
        tool_form: str | None = None,
        control: bool = False,
        on_log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._engines = engines
        self._home = home
        self._ports = ports or Ports()
        self._names = names
        self._overrides = overrides or Overrides()
        self._api_keys = api_keys
        self._tool_form = None if tool_form is None else form_named(tool_form)
        self._controlled = control
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

    @property
    def control(self) -> ModelControl:
        """Unloads engines and loads them again.

        Raises:
            ServeError: it is not running, or was started without.
        """
        if self._triton is None:
            raise ServeError("the deployment is not running")
        return self._triton.control

    def start(self, stop: threading.Event | None = None) -> bool:
        """Start everything and wait until it answers. What had started is closed again when this fails.

        Args:
            stop: give up when this is set.

        Returns:
            Whether it is ready; False only when ``stop`` was set.

        Raises:
            SetupError: there is no usable Triton.
            UsageError: the engines cannot run with these overrides on this machine.
            ServeError: a port is taken, a file cannot be written, or Triton or an engine process could not start.
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

    def close(self, grace_s: float = GRACE_S) -> None:
        """Stop everything, the front first so that no request meets a closed door. May be called twice.

        Args:
            grace_s: how long the front's requests may go on.
        """
        with ExitStack() as closing:  # runs backwards, and to its end whatever fails on the way
            if self._folder is not None:
                closing.callback(shutil.rmtree, self._folder, ignore_errors=True)
            if self._triton is not None:
                closing.callback(self._triton.stop)
            if self._front is not None:
                closing.callback(self._front.stop, grace_s)
            self._endpoints, self._front, self._triton, self._folder = None, None, None, None

    def _start(self, stop: threading.Event) -> Endpoints | None:
        # What cannot work is said before anything starts, in a line of ours instead of Triton's log.
        for engine in self._engines:
            require_runnable(engine)
        placed = place_engines(self._engines, self._overrides, memory=FreeMemory(), names=self._names)
        install = find_triton(self._home.cache)
        self._folder = folder = private_folder()
        repository = folder / "models"
        with writing("the model repository", folder):
            for each in placed:
                write_repository(repository, each.engine, overrides=each.overrides, name=each.name)
        wanted, host = self._ports, self._ports.host
        self._triton = triton = TritonServer(
            within_plain_path(install, folder),
            repository,
            [each.name for each in placed],
            host=host,
            ports=TritonPorts(http=wanted.http, grpc=wanted.grpc, metrics=wanted.metrics),
            control=self._controlled,
            scratch=folder,
            on_log=self._on_log,
        )
        reachable = _LOOPBACK if host == _EVERYWHERE else host
        models = {each.name: _served(each, triton, reachable, self._tool_form) for each in placed}
        app = create_app(models, api_keys=self._api_keys)
        self._front = FrontServer(app, host=host, port=wanted.openai)  # a taken port shows before Triton starts
        if not triton.start(stop):
            return None
        self._front.start()
        ports = triton.ports
        return Endpoints(
            model=placed[0].name,
            models=tuple(models),
            http=f"http://{reachable}:{ports.http}",
            grpc=f"{reachable}:{ports.grpc}",
            metrics=_metrics_url(reachable, ports),
            openai=f"http://{reachable}:{self._front.port}/v1",
            chat=placed[0].engine.manifest.chat,
            control_key=triton.control_key,
        )


def run_deployment(deployment: Deployment, *, on_ready: Callable[[Endpoints], None]) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP (a closed terminal), then return. Must be called from the main thread.

    Args:
        deployment: what to serve.
        on_ready: called once, when everything answers.

    Raises:
        SetupError: there is no usable Triton.
        UsageError: as :meth:`Deployment.start`.
        ServeError: as :meth:`Deployment.start`, or Triton ended by itself.
    """
    with stop_signals() as stop:
        try:
            if deployment.start(stop):
                on_ready(deployment.endpoints)
            while not stop.wait(_WATCH_PERIOD_S):
                deployment.require_running()
        finally:
            deployment.close()


def _served(placed: PlacedEngine, triton: TritonServer, host: str, form: ToolForm | None) -> ServedModel:
    """An engine as the front serves it; Triton's ports are known once it runs, and asked for only then."""

    def connect() -> TritonClient:
        return TritonClient(f"{host}:{triton.ports.grpc}", placed.name, _metrics_url(host, triton.ports))

    template = load_chat_template(placed.engine.checkpoint, chat=placed.engine.manifest.chat, form=form)
    return ServedModel(template=template, connect=connect)


def _metrics_url(host: str, ports: TritonPorts) -> str:
    return f"http://{host}:{ports.metrics}/metrics"
