"""The kernels under sanitizers, and in the widths of other CPUs, as a program without Python."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from roundhouse.errors import SetupError
from roundhouse.plugins.native_library import FLAGS, SOURCES, Compiler, find_compiler

DRIVERS = Path(__file__).parent / "support"
KERNELS = ("attention", "linear", "page_guard", "step")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-D_GLIBCXX_ASSERTIONS", "-O0", "-g")
NOT_FOR_A_PROGRAM = ("-shared", "-fPIC", "-O3")


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    try:
        return find_compiler()
    except SetupError as error:
        pytest.skip(str(error))


def call(compiler: Compiler, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*compiler.command, *arguments], capture_output=True, text=True, check=False)


def build(compiler: Compiler, folder: Path, kernel: str, *flags: str) -> None:
    kept = [flag for flag in FLAGS if flag not in NOT_FOR_A_PROGRAM]
    sources = [f"-I{SOURCES}", str(SOURCES / f"{kernel}.cpp"), str(DRIVERS / f"{kernel}_driver.cpp")]
    built = call(compiler, *kept, *flags, *sources, "-o", str(folder / "driver"))
    assert built.returncode == 0, built.stderr


def run(folder: Path, seed: int) -> None:
    # Leaks are looked for with ptrace, which containers may forbid; the kernels own memory through unique_ptr and vector.
    environment = {**os.environ, "OMP_NUM_THREADS": "3", "ASAN_OPTIONS": "detect_leaks=0"}
    command = [str(folder / "driver"), str(seed)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.stdout == "agreed\n", result.stdout + result.stderr
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_read_or_write_beside_a_buffer_and_no_undefined_behaviour(compiler: Compiler, tmp_path: Path, kernel: str) -> None:
    (tmp_path / "probe.cpp").write_text("int main() {}")
    probed = call(compiler, SANITIZERS[0], str(tmp_path / "probe.cpp"), "-o", str(tmp_path / "probe"))
    if probed.returncode:
        pytest.skip(f"this compiler has no sanitizers: {probed.stderr.strip()[-200:]}")
    build(compiler, tmp_path, kernel, *SANITIZERS)
    run(tmp_path, seed=1)


def test_the_cuda_guard_s_source_reads_only_its_arrays_and_is_right(compiler: Compiler, tmp_path: Path) -> None:
    """A block's threads as threads of the CPU: see ``support/cuda_on_cpu/cuda_runtime.h``."""
    driver, out = str(DRIVERS / "page_guard_cuda_driver.cpp"), str(tmp_path / "driver")
    folders = [f"-I{DRIVERS / 'cuda_on_cpu'}", f"-I{SOURCES}"]
    built = call(compiler, "-std=c++17", "-pthread", *SANITIZERS, *folders, driver, "-o", out)
    if "cannot find -l" in built.stderr:
        pytest.skip(f"this compiler has no sanitizers: {built.stderr.strip()[-200:]}")
    assert built.returncode == 0, built.stderr
    run(tmp_path, seed=1)


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel != "page_guard"])
@pytest.mark.parametrize("lanes", [4, 16])
def test_vectors_of_other_widths_compute_the_same(compiler: Compiler, tmp_path: Path, kernel: str, lanes: int) -> None:
    build(compiler, tmp_path, kernel, "-O1", f"-DROUNDHOUSE_LANES={lanes}", "-Wno-psabi")
    run(tmp_path, seed=lanes)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names x86 CPUs")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v4", "cascadelake"])
def test_it_compiles_for_cpus_that_are_not_here(compiler: Compiler, tmp_path: Path, kernel: str, cpu: str) -> None:
    source, out = str(SOURCES / f"{kernel}.cpp"), str(tmp_path / "out")
    result = call(compiler, *FLAGS, f"-march={cpu}", "-O0", source, "-S", "-o", out)
    assert result.returncode == 0, result.stderr
