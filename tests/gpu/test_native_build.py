"""What CMake builds where nvcc is: no GPU is needed for these."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
from native_build import TENSORRT, NativeBuild

from roundhouse.plugins.native_guard import load_cuda_guard
from roundhouse.plugins.native_interface import GuardTables
from roundhouse.plugins.native_library import SOURCES, find_compiler
from roundhouse.plugins.tensorrt_aot import read_kernel

SUPPORT = Path(__file__).parents[1] / "plugins" / "support"
CUDA_INCLUDE = Path("/usr/local/cuda/include")


def test_the_kernel_spills_no_registers(native_build: NativeBuild) -> None:
    assert re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", native_build.log) == [
        ("0", "0", "0")
    ]


def test_the_ptx_holds_the_kernel_that_is_launched(native_build: NativeBuild) -> None:
    kernel = read_kernel(native_build.folder / "page_guard.ptx")
    source = (SOURCES / "cuda" / "page_guard.cuh").read_text()
    assert f"kGuardThreads = {kernel.threads};" in source
    assert kernel.ptx.count(b".v4.") >= 2  # loads of 16 bytes, of pages and of tags


def test_the_launch_refuses_negative_sizes_and_takes_no_rows(native_build: NativeBuild) -> None:
    library = load_cuda_guard(native_build.library("roundhouse_page_guard_cuda"))
    for sizes, code in (((-1, 1, 1), 1), ((1, -1, 1), 1), ((1, 1, -1), 1), ((0, 1, 1), 0)):
        assert library.rh_page_guard_cuda(ctypes.byref(GuardTables(0, 0, 0, 0, *sizes)), None, None) == code


def exported(library: Path) -> set[str]:
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in listed.splitlines() if line.split()[-2] == "T"}


@pytest.fixture
def headers(native_build: NativeBuild) -> Path:
    if native_build.tensorrt_headers is None:
        pytest.skip(f"{TENSORRT} does not name TensorRT's headers")
    return native_build.tensorrt_headers


def test_the_plugin_exports_what_tensorrt_asks_for(native_build: NativeBuild, headers: Path) -> None:
    loaded, preloaded = (native_build.library(f"roundhouse_kv_page_guard{end}") for end in ("", "_preload"))
    assert exported(loaded) == {"getCreators", "setLoggerFinder", "rh_page_guard_cuda"}
    assert exported(preloaded) == {"rh_page_guard_cuda"}
    undefined = subprocess.run(["nm", "-D", "-u", str(loaded)], capture_output=True, text=True, check=True).stdout
    assert "getPluginRegistry" not in undefined


def test_the_plugin_answers_as_tensorrt_s_headers_say(headers: Path, tmp_path: Path) -> None:
    """All its methods, called as TensorRT calls them, with the CPU's guard in place of the launch."""
    compiler, out = find_compiler(), tmp_path / "driver"
    sources = [SOURCES / "tensorrt" / name for name in ("kv_page_guard.cpp", "exports.cpp")]
    sources += [SOURCES / "page_guard.cpp", SUPPORT / "kv_page_guard_driver.cpp"]
    flags = ["-std=c++17", "-fopenmp", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    folders = [f"-I{SOURCES}", f"-I{SUPPORT}", "-isystem", str(headers), "-isystem", str(CUDA_INCLUDE)]
    command = [*compiler.command, *flags, *folders, *map(str, sources), "-o", str(out)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    result = subprocess.run([str(out)], env={"ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, text=True, check=False)
    assert result.stdout == "agreed\n", result.stdout + result.stderr
