"""An engine loaded into a Triton server that somebody else runs, through its model control, with an OpenAI front of our own.

The server must be one that allows it (``--model-control-mode=explicit``), see the engine's folder under the same path, and run
its Python backend in an environment that has this package: its stub starts the engine process from there.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx

from roundhouse.build.engine import Engine
from roundhouse.errors import ServeError

from .addresses import Endpoints
from .openai.api_keys import ApiKeys
from .openai.app import create_app
from .openai.chat import load_chat_template
from .openai.served import ServedModel
from .openai.server import GRACE_S, FrontServer
from .openai.tools import form_named
from .openai.triton_client import TritonClient
from .settings import Overrides
from .triton.control import ModelControl
from .triton.repository import MODEL_PY, config_text, model_parameters, require_model_name

__all__ = ["OWNER_KEY", "RemoteDeployment", "RemoteTriton", "config_json"]

OWNER_KEY = "deployment"
"""The config parameter that says whose model it is, so that nobody unloads another's."""
_NEEDED = (
    "The server needs --model-control-mode=explicit, the engine's folder under the same path, and a Python backend in whose "
    "environment this package is installed."
)
_MOST_SILENCE = 10
"""Looks in a row without an answer before the server counts as gone."""


@dataclass(frozen=True)
class RemoteTriton:
    """Where somebody's Triton server answers."""

    http: str
    """Base URL."""
    grpc: str
    """``host:port``."""
    metrics: str
    """URL."""
    control: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The header that its model control asks for; empty where it asks for none."""


class RemoteDeployment:
    """One engine on a remote server, and the front before it.

    Args:
        engine: what to serve.
        name: what it is served as; must be free there.
        owner: who it belongs to: a model that was left there by the same owner is taken over.
        triton: the server.
        host: the address that the front listens on.
        port: its port; 0 takes a free one.
        overrides: what to change of the engine's recipe.
        api_keys: who may ask the front; None lets everybody.
        tool_form: as of :class:`~roundhouse.serve.deployment.Deployment`.

    Raises:
        UsageError: there is no such form, the name is none, or the URL is none.
    """

    def __init__(
        self,
        engine: Engine,
        name: str,
        owner: str,
        triton: RemoteTriton,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        overrides: Overrides | None = None,
        api_keys: ApiKeys | None = None,
        tool_form: str | None = None,
    ) -> None:
        require_model_name(name)
        self._engine = engine
        self._name = name
        self._owner = owner
        self._triton = triton
        self._listen = host, port
        self._overrides = overrides or Overrides()
        self._api_keys = api_keys
        self._tool_form = None if tool_form is None else form_named(tool_form)
        self._control = ModelControl(triton.http, triton.control)
        self._front: FrontServer | None = None
        self._loaded = False
        self._silence = 0
        self._endpoints: Endpoints | None = None

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
        """Load the engine and start the front. What had started is undone when this fails.

        Args:
            stop: give up when this is set; a load that is under way is waited for.

        Returns:
            Whether it is ready; False only when ``stop`` was set.

        Raises:
            ServeError: the server does not answer or cannot load it, the name is taken there, or the front's port is.
        """
        try:
            self._require_metrics()
            self._load()
            self._start_front()
        except BaseException:
            self.close()
            raise
        if stop is not None and stop.is_set():
            self.close()
        return self._endpoints is not None

    def require_running(self) -> None:
        """Raise when the model is not there any more.

        Raises:
            ServeError: the server has not answered for a while, or somebody unloaded the model.
        """
        try:
            ready = self._control.ready(self._name)
        except ServeError:
            self._silence += 1
            if self._silence >= _MOST_SILENCE:
                raise
            return
        self._silence = 0
        if not ready:
            raise ServeError(f"{self._name} is not loaded in {self._triton.http} any more")

    def close(self, grace_s: float = GRACE_S) -> None:
        """Stop the front and unload the engine; requests in flight are served first. May be called twice.

        Args:
            grace_s: how long the front's requests may go on.

        Raises:
            ServeError: the server does not unload it.
        """
        with ExitStack() as closing:
            if self._loaded:
                closing.callback(self.unload, self._control, self._name, self._owner)
            if self._front is not None:
                closing.callback(self._front.stop, grace_s)
            self._endpoints, self._front, self._loaded = None, None, False

    @staticmethod
    def unload(control: ModelControl, name: str, owner: str) -> None:
        """Unload a model if it is this owner's.

        Raises:
            ServeError: the server does not answer, or does not unload it.
        """
        if (control.parameters(name) or {}).get(OWNER_KEY) == owner:
            control.unload(name)

    def _require_metrics(self) -> None:
        """See that the front will be able to tell how the engine is, before anything is loaded."""
        try:
            httpx.get(self._triton.metrics, trust_env=False).raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServeError(f"Triton's metrics do not answer at {self._triton.metrics}: {error}") from None

    def _load(self) -> None:
        there = self._control.parameters(self._name)
        if there is not None and there.get(OWNER_KEY) != self._owner:
            raise ServeError(f"{self._triton.http} serves another model as {self._name}", hint="Take another name.")
        self._loaded = there is not None
        if there is not None:
            return
        parameters = model_parameters(self._engine, self._overrides) | {OWNER_KEY: self._owner}
        try:
            config = config_json(self._name, parameters)
            self._control.load(self._name, config=config, files={"1/model.py": MODEL_PY.encode()})
        except ServeError as error:
            raise ServeError(error.message, hint=_NEEDED) from None
        self._loaded = True

    def _start_front(self) -> None:
        manifest, triton, (host, port) = self._engine.manifest, self._triton, self._listen
        template = load_chat_template(self._engine.checkpoint, chat=manifest.chat, form=self._tool_form)
        served = ServedModel(template, lambda: TritonClient(triton.grpc, self._name, triton.metrics))
        self._front = FrontServer(create_app({self._name: served}, api_keys=self._api_keys), host=host, port=port)
        self._front.start()
        reachable = "127.0.0.1" if host == "0.0.0.0" else host
        self._endpoints = Endpoints(
            model=self._name,
            models=(self._name,),
            http=triton.http,
            grpc=triton.grpc,
            metrics=triton.metrics,
            openai=f"http://{reachable}:{self._front.port}/v1",
            chat=manifest.chat,
        )


def config_json(name: str, parameters: dict[str, str]) -> str:
    """A model's config as model control takes it."""
    from google.protobuf import json_format, text_format
    from tritonclient.grpc import model_config_pb2

    config: Any = text_format.Parse(config_text(name, parameters), model_config_pb2.ModelConfig())
    return str(json_format.MessageToJson(config, preserving_proto_field_name=True))
