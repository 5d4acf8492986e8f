"""A running Triton server: started, waited for, its log relayed, and nothing left behind."""

from __future__ import annotations

import http.client
import os
import secrets
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import roundhouse
from roundhouse.errors import ServeError

from ..leftovers import owned_name, remove_leftovers, remove_named
from ..process.tethered import TetheredProcess
from .control import CONTROL_HEADER, ModelControl
from .locate import TritonInstall, check_numpy
from .log import ServerLog
from .ports import TritonPorts, choose_ports

__all__ = ["TritonServer"]

_SHM = Path("/dev/shm")
_POLL_S = 0.1
_EXIT_TIMEOUT_S = 5
_PORT_ATTEMPTS = 3


class TritonServer:
    """Triton, serving one model repository.

    It runs on a tether (:mod:`roundhouse.serve.process.tether`): whatever ends this process, even
    ``kill -9``, ends the server, its Python stub and the engine process.

    Args:
        install: where Triton is.
        repository: a linted model repository.
        models: names of the models in it to serve from the start; none needs ``control``.
        host: the address every port listens on.
        ports: 0 asks for a free one.
        control: whether models can be loaded and unloaded while it runs, with :attr:`control`'s key.
        scratch: where the server's processes put temporary files, the engine process's sockets among them.
        on_log: gets each log line.
    """

    def __init__(
        self,
        install: TritonInstall,
        repository: Path,
        models: Sequence[str],
        *,
        host: str = "127.0.0.1",
        ports: TritonPorts | None = None,
        control: bool = False,
        scratch: Path | None = None,
        on_log: Callable[[str], None] = lambda _: None,
    ) -> None:
        check_numpy(install.version, version("numpy"))
        self.host = host
        self.ports = ports or TritonPorts()
        self._wanted = self.ports
        self._install = install
        self._repository = repository
        self._models = tuple(models)
        self._control_key = secrets.token_urlsafe() if control else None
        self._scratch = scratch
        self._on_log = on_log
        self._prefix = f"{owned_name()}_"
        self._log = ServerLog()
        self._process: TetheredProcess | None = None

    def start(self, stop: threading.Event | None = None) -> bool:
        """Start the server and wait until its models are ready.

        Args:
            stop: when set meanwhile, the server is stopped again.

        Returns:
            Whether it is ready; False only when ``stop`` was set.

        Raises:
            ServeError: it ended or could not load a model (with the log lines that say why), or a
                port is taken.
        """
        remove_leftovers(_SHM)
        for attempt in range(_PORT_ATTEMPTS):
            self.ports = choose_ports(self._wanted, self.host)
            self._log = ServerLog()
            self._process = TetheredProcess(self._command(), self._environment(), self._take_line)
            try:
                return self._wait_ready(stop or threading.Event())
            except ServeError:
                # Between choosing a free port and Triton's listening, another process may have taken it.
                if not (self._log.port_taken and 0 in self._wanted.chosen) or attempt == _PORT_ATTEMPTS - 1:
                    raise
        return False

    def require_running(self) -> None:
        """Raise when the server has ended by itself.

        Raises:
            ServeError: with the last log lines.
        """
        if self._process is not None and self._process.exit_code is not None:
            raise self._failed(f"Triton ended with code {self._process.exit_code}")

    @property
    def control_key(self) -> str | None:
        """What :attr:`control` needs; None when it was not asked for."""
        return self._control_key

    @property
    def control(self) -> ModelControl:
        """Loads and unloads models of the running server.

        Raises:
            ServeError: it was not asked for.
        """
        if self._control_key is None:
            raise ServeError("this server was started without model control")
        return ModelControl(f"http://{self.host}:{self.ports.http}", {CONTROL_HEADER: self._control_key})

    def ready(self) -> bool:
        """Whether it answers, and the models that it started with say that they are ready."""
        return all(map(self._answers, [f"/v2/models/{model}/ready" for model in self._models] or ["/v2/health/ready"]))

    def _answers(self, path: str) -> bool:
        connection = http.client.HTTPConnection(self.host, self.ports.http, timeout=2.0)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        """Let running requests end for a few seconds, stop the server and remove its shared memory."""
        if self._process is not None:
            self._process.stop(grace_s=_EXIT_TIMEOUT_S * 2)
        remove_named(_SHM, self._prefix)

    def _take_line(self, line: str) -> None:
        self._log.take(line)
        self._on_log(line)

    def _wait_ready(self, stop: threading.Event) -> bool:
        while not self.ready():
            if stop.wait(_POLL_S):
                self.stop()
                return False
            if self._process is not None and self._process.exit_code is not None:
                raise self._failed(f"Triton could not serve {', '.join(self._models)}")
        return True

    def _failed(self, what: str) -> ServeError:
        if self._process is not None:
            self._process.close()
        remove_named(_SHM, self._prefix)
        return ServeError("\n".join([f"{what}:", *(f"  {line}" for line in self._log.reasons())]))

    def _command(self) -> list[str]:
        flags = {
            "model-repository": self._repository,
            "backend-directory": self._install.backend_directory,
            "http-address": self.host,
            "grpc-address": self.host,
            "metrics-address": self.host,
            "http-port": self.ports.http,
            "grpc-port": self.ports.grpc,
            "metrics-port": self.ports.metrics,
            "allow-gpu-metrics": "false",
            "pinned-memory-pool-byte-size": 0,
            "exit-timeout-secs": _EXIT_TIMEOUT_S,
            "backend-config": f"python,shm-region-prefix-name={self._prefix}",
            # Two stubs that start in the same moment can take one region of shared memory, and the whole server aborts
            # (boost::interprocess::lock_exception, seen with 2.51).
            "model-load-thread-count": 1,
        }
        values = [f"--{name}={value}" for name, value in flags.items()] + self._control_flags()
        return [str(self._install.binary), "--disable-auto-complete-config", *values]

    def _control_flags(self) -> list[str]:
        if self._control_key is None:
            return []
        restricted = f"model-repository:{CONTROL_HEADER}={self._control_key}"
        loaded = [f"--load-model={model}" for model in self._models]
        return [
            "--model-control-mode=explicit",
            f"--http-restricted-api={restricted}",
            f"--grpc-restricted-protocol={restricted}",
            *loaded,
        ]

    def _environment(self) -> dict[str, str]:
        """This environment, with this interpreter first in PATH: the stub finds its packages by it."""
        environment = dict(os.environ)
        _prepend(environment, "PATH", str(Path(sys.executable).parent))
        for folder in reversed(self._install.library_dirs):
            _prepend(environment, "LD_LIBRARY_PATH", str(folder))
        if self._scratch is not None:
            environment["TMPDIR"] = str(self._scratch)
        package = Path(roundhouse.__file__).parent.parent
        if package != Path(sysconfig.get_path("purelib")):  # run from a checkout
            _prepend(environment, "PYTHONPATH", str(package))
        return environment


def _prepend(environment: dict[str, str], name: str, folder: str) -> None:
    before = environment.get(name)
    environment[name] = f"{folder}{os.pathsep}{before}" if before else folder
