"""What CMake builds of ``plugins/native/``, where nvcc is."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from roundhouse.plugins.native_library import SOURCES

TENSORRT = "TENSORRT_INCLUDE_DIR"
_NVCC = Path("/usr/local/cuda/bin")


@dataclass(frozen=True)
class NativeBuild:
    """A finished build."""

    folder: Path
    log: str
    tensorrt_headers: Path | None

    def library(self, name: str) -> Path:
        return self.folder / f"lib{name}.so"


def build_natively(folder: Path) -> NativeBuild:
    """Build with CMake into a folder, or skip the test where a tool is missing."""
    path, headers = f"{os.environ['PATH']}:{_NVCC}", os.environ.get(TENSORRT, "")
    for tool in ("cmake", "nvcc"):
        if shutil.which(tool, path=path) is None:
            pytest.skip(f"there is no {tool}")
    log = ""
    # For the oldest GPU that is supported: its PTX runs on every later one.
    options = ["-DCMAKE_CUDA_ARCHITECTURES=80", f"-D{TENSORRT}={headers}"]
    for command in (["cmake", "-S", str(SOURCES), "-B", str(folder), *options], ["cmake", "--build", str(folder)]):
        result = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        log += result.stdout + result.stderr
    return NativeBuild(folder, log, Path(headers) if headers else None)
