"""Finds a Triton server on this machine.

In this order: ``$ROUNDHOUSE_TRITON`` (path of a ``tritonserver``), ``tritonserver`` on PATH,
``/opt/tritonserver`` (NVIDIA's containers), the nvidia-pytriton wheel of this interpreter.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from roundhouse.errors import SetupError

from .wheel import WheelTriton, find_wheel, lay_out

__all__ = ["TritonInstall", "check_numpy", "find_triton"]

ENVIRONMENT_KEY = "ROUNDHOUSE_TRITON"
_CONTAINER = Path("/opt/tritonserver/bin/tritonserver")
_LAST_WITH_NUMPY_1 = (2, 52)
"""The last Triton whose Python stub corrupts tensors under NumPy 2."""
_UNKNOWN = "unknown"
_LIBPYTHON = re.compile(rb"libpython3\.(\d+)\.so")


@dataclass(frozen=True)
class TritonInstall:
    """A Triton server that can run Python models with this interpreter."""

    binary: Path
    version: str
    """As ``2.51.0``, or ``unknown``."""
    backend_directory: Path
    """For ``--backend-directory``; holds ``python/`` with the backend and its stub."""
    stub: Path
    """Built for this interpreter's Python version."""
    library_dirs: tuple[Path, ...]
    """For ``LD_LIBRARY_PATH``."""
    source: str
    """Where it was found, for people."""


def find_triton(cache: Path) -> TritonInstall:
    """Find a server and see that its Python stub fits this interpreter.

    Args:
        cache: where the wheel's backend is laid out (the wheel keeps its stubs elsewhere than Triton looks).

    Raises:
        SetupError: there is none, ``$ROUNDHOUSE_TRITON`` is not a file, or its stub is for another Python.
    """
    given = os.environ.get(ENVIRONMENT_KEY)
    if given:
        if not Path(given).is_file():
            raise SetupError(f"{ENVIRONMENT_KEY} is {given}, which is not a file", hint="Point it at a tritonserver binary.")
        return _installed(Path(given), ENVIRONMENT_KEY)
    on_path = shutil.which("tritonserver")
    if on_path:
        return _installed(Path(on_path).resolve(), "PATH")
    if _CONTAINER.is_file():
        return _installed(_CONTAINER, str(_CONTAINER.parent))
    wheel = find_wheel()
    if wheel is not None:
        return _from_wheel(wheel, cache)
    raise SetupError(
        "no Triton Inference Server was found",
        hint=f"Install nvidia-pytriton into this environment, or set {ENVIRONMENT_KEY} to a tritonserver binary.",
    )


def check_numpy(triton_version: str, numpy_version: str) -> None:
    """Refuse NumPy 2 with a Triton whose Python stub silently corrupts tensors under it.

    Raises:
        SetupError: NumPy is 2 or newer and Triton is 2.52 or older, or of unknown version.
    """
    if _numbers(numpy_version) < (2,) or _numbers(triton_version) > _LAST_WITH_NUMPY_1:
        return
    raise SetupError(
        f"Triton {triton_version} corrupts tensors under NumPy {numpy_version}",
        hint="Install numpy==1.26.4 in this environment, or use Triton 2.53 or newer.",
    )


def _installed(binary: Path, source: str) -> TritonInstall:
    """A server in Triton's usual layout: ``bin/``, ``lib/``, ``backends/python/`` and ``TRITON_VERSION``."""
    root = binary.parent.parent
    stub = root / "backends" / "python" / "triton_python_backend_stub"
    if not stub.is_file():
        raise SetupError(
            f"{binary} has no Python backend: {stub} is missing", hint="Use a Triton build with the Python backend."
        )
    built_for = _LIBPYTHON.search(stub.read_bytes())
    if built_for and int(built_for[1]) != sys.version_info.minor:
        raise SetupError(
            f"the Python backend of {binary} is for Python 3.{built_for[1].decode()}, this is 3.{sys.version_info.minor}",
            hint="Run Roundhouse with that Python, or put a stub built for this one beside the backend.",
        )
    version_file = root / "TRITON_VERSION"
    version = version_file.read_text().strip() if version_file.is_file() else _UNKNOWN
    return TritonInstall(
        binary=binary,
        version=version,
        backend_directory=root / "backends",
        stub=stub,
        library_dirs=tuple(path for path in (_libpython_dir(), root / "lib") if path.is_dir()),
        source=source,
    )


def _from_wheel(wheel: WheelTriton, cache: Path) -> TritonInstall:
    backend_directory = lay_out(wheel, cache)
    return TritonInstall(
        binary=wheel.binary,
        version=wheel.triton_version or _UNKNOWN,
        backend_directory=backend_directory,
        stub=backend_directory / "python" / wheel.stub.name,
        library_dirs=(_libpython_dir(), wheel.libraries),
        source=f"nvidia-pytriton {wheel.version}",
    )


def _libpython_dir() -> Path:
    """Where this interpreter's shared library is, which the stub is linked against."""
    return Path(sysconfig.get_config_var("LIBDIR") or Path(sys.base_prefix) / "lib")


def _numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version; empty when there are none (which sorts before every version)."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
