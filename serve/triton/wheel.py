"""The Triton server inside the nvidia-pytriton wheel, and its Python backend in the layout Triton expects.

The wheel keeps one stub per Python version apart from the backend, but Triton looks for the stub
beside it, so both are copied into a folder of the cache, once.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from roundhouse.errors import SetupError

from ..disk import writing
from ..leftovers import owned_name, remove_leftovers

__all__ = ["WheelTriton", "find_wheel", "lay_out"]

_DISTRIBUTION = "nvidia-pytriton"
_TRITON_VERSIONS = {"0.7.0": "2.51.0"}
"""Which Triton each release of the wheel carries: the wheel does not say."""


@dataclass(frozen=True)
class WheelTriton:
    """What the wheel holds for this interpreter."""

    version: str
    """Of the wheel."""
    triton_version: str | None
    binary: Path
    stub: Path
    backend_files: tuple[Path, ...]
    libraries: Path


def find_wheel() -> WheelTriton | None:
    """The installed wheel, or None when it is not installed.

    Raises:
        SetupError: it is installed but holds no stub for this Python.
    """
    try:
        distribution = importlib.metadata.distribution(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return None
    root = Path(str(distribution.locate_file("pytriton/tritonserver")))
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = root / "python_backend_stubs" / python / "triton_python_backend_stub"
    if not stub.is_file():
        raise SetupError(
            f"{_DISTRIBUTION} {distribution.version} has no Triton stub for Python {python}",
            hint="Use Python 3.11 or 3.12.",
        )
    backend = root / "backends" / "python"
    return WheelTriton(
        version=distribution.version,
        triton_version=_TRITON_VERSIONS.get(distribution.version),
        binary=root / "bin" / "tritonserver",
        stub=stub,
        backend_files=(backend / "libtriton_python.so", backend / "triton_python_backend_utils.py"),
        libraries=Path(str(distribution.locate_file("nvidia_pytriton.libs"))),
    )


def lay_out(wheel: WheelTriton, cache: Path) -> Path:
    """Copy backend and stub to ``<cache>/triton-<version>-py<python>/python/``; the backend directory for Triton.

    The folder appears complete or not at all, so two processes may do this at once; one that lost a
    file is made again. What killed processes left half done is removed.

    Raises:
        ServeError: the cache cannot be written to.
    """
    version = wheel.triton_version or f"wheel-{wheel.version}"
    folder = cache / f"triton-{version}-py{sys.version_info.major}.{sys.version_info.minor}"
    sources = (*wheel.backend_files, wheel.stub)
    if _complete(folder, sources):
        return folder
    fresh = cache / owned_name()
    try:
        with writing("Triton's Python backend", cache, variable="ROUNDHOUSE_HOME"):
            cache.mkdir(parents=True, exist_ok=True)
            remove_leftovers(cache)
            (fresh / "python").mkdir(parents=True)
            for source in sources:
                shutil.copy2(source, fresh / "python" / source.name)
            _put_in_place(fresh, folder, sources)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _put_in_place(fresh: Path, folder: Path, sources: tuple[Path, ...]) -> None:
    try:
        os.rename(fresh, folder)
    except OSError:
        if _complete(folder, sources):  # another process was faster
            return
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(fresh, folder)


def _complete(folder: Path, sources: tuple[Path, ...]) -> bool:
    copies = [(source, folder / "python" / source.name) for source in sources]
    return all(copy.is_file() and copy.stat().st_size == source.stat().st_size for source, copy in copies)
