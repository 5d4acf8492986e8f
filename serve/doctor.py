"""`roundhouse doctor`: what this machine can do, and why not."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import psutil
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from roundhouse.build.hardware import this_machine
from roundhouse.build.terminal import byte_text
from roundhouse.errors import SetupError
from roundhouse.plugins.native_library import compiled_library, find_compiler

from .finding import Finding, State
from .findings_of_trtllm import about_tensorrt_llm
from .triton.locate import check_numpy, find_triton

if TYPE_CHECKING:
    from roundhouse.build.home import Home

__all__ = ["diagnose", "doctor_table"]

_MARKS: dict[State, tuple[str, str]] = {
    "ok": ("✓ ok", "green"),
    "limited": ("! limited", "yellow"),
    "absent": ("- absent", "dim"),
    "missing": ("✗ missing", "red"),
}
_MIN_DISK = 5 << 30
_MIN_SHM = 64 << 20
_MIN_MEMORY = 2 << 30
_WITHOUT_KERNELS = "and a step takes two to three times as long"
"""Measured on two cores with AVX2 with the demo's engine: prompts of 128 tokens and decoding, 1 and 8 requests at once."""


def diagnose(home: Home) -> list[Finding]:
    """Look at everything that plans, builds and servers need. Compiles kernels once; starts and downloads nothing."""
    needed = [
        _python(),
        _package("torch", "pip install 'roundhouse-llm[build,serve]'"),
        _package("nvidia-modelopt", "pip install 'roundhouse-llm[build]'"),
        _package("transformers", "pip install 'roundhouse-llm[build,serve]'"),
        *_triton(home),
    ]
    return [
        *needed,
        _gpu(),
        _torch_target(needed),
        *about_tensorrt_llm(),
        _compiler(),
        _native_kernels(home),
        _shared_memory(),
        _memory(),
        _disk(home),
    ]


def doctor_table(findings: list[Finding]) -> Table:
    """Findings with what to do about them."""
    table = Table("", "", "what was found", "what to do", box=SIMPLE)
    for finding in findings:
        word, style = _MARKS[finding.state]
        table.add_row(Text(word, style=style), finding.name, Text(finding.detail), Text(finding.remedy))
    return table


def _python() -> Finding:
    found = platform.python_version()
    if sys.version_info[:2] in ((3, 11), (3, 12)):
        return Finding(name="Python", state="ok", detail=f"{found} at {sys.executable}")
    return Finding(name="Python", state="missing", detail=found, remedy="use Python 3.11 or 3.12")


def _package(name: str, remedy: str) -> Finding:
    try:
        return Finding(name=name, state="ok", detail=version(name))
    except PackageNotFoundError:
        return Finding(name=name, state="missing", detail="not installed", remedy=remedy)


def _triton(home: Home) -> list[Finding]:
    try:
        found = find_triton(home.cache)
    except SetupError as error:
        return [Finding(name="Triton", state="missing", detail=error.message, remedy=error.hint or "")]
    triton = Finding(name="Triton", state="ok", detail=f"{found.version} from {found.source}")
    numpy = _package("numpy", "pip install numpy==1.26.4")
    if numpy.state == "ok":
        try:
            check_numpy(found.version, numpy.detail)
        except SetupError as error:
            numpy = Finding(name="numpy", state="missing", detail=error.message, remedy=error.hint or "")
    return [triton, numpy]


def _gpu() -> Finding:
    command = shutil.which("nvidia-smi")
    query = [command or "", "--query-gpu=name,compute_cap,memory.total,driver_version", "--format=csv,noheader"]
    if command is not None:
        try:
            answer = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            answer = ""
        if answer:
            return Finding(name="NVIDIA GPU", state="ok", detail="; ".join(answer.splitlines()))
    return Finding(name="NVIDIA GPU", state="absent", detail="none found; the torch target runs on the CPU")


def _torch_target(needed: list[Finding]) -> Finding:
    lacking = [finding.name for finding in needed if finding.state == "missing"]
    if lacking:
        return Finding(name="target torch", state="missing", detail=f"needs {', '.join(lacking)}", remedy="see above")
    return Finding(name="target torch", state="ok", detail="the default: builds and serves on this CPU, behind Triton")


def _compiler() -> Finding:
    try:
        found = find_compiler()
    except SetupError as error:
        return Finding(name="C++ compiler", state="absent", detail=error.message)
    return Finding(name="C++ compiler", state="ok", detail=f"{shlex.join(found.command)}: {found.version}")


def _native_kernels(home: Home) -> Finding:
    """Compiles the kernels unless they are there: only trying tells whether headers, OpenMP and linker fit together."""
    try:
        library = compiled_library(home.kernels)
    except SetupError as error:
        detail = f"{error.message}; attention and linears run in plain torch, {_WITHOUT_KERNELS}"
        return Finding(name="native kernels", state="limited", detail=detail, remedy=error.hint or "")
    return Finding(name="native kernels", state="ok", detail=f"compiled for this CPU: {library.name}")


def _shared_memory() -> Finding:
    try:
        free = psutil.disk_usage("/dev/shm").free
    except OSError:
        return Finding(name="/dev/shm", state="missing", detail="not mounted", remedy="Triton's Python backend needs it")
    ours = sum(1 for name in os.listdir("/dev/shm") if name.startswith("roundhouse_"))
    detail = f"{byte_text(free)} free, {ours} regions of running or crashed servers"
    if free < _MIN_SHM:
        return Finding(name="/dev/shm", state="limited", detail=detail, remedy="give the container a larger --shm-size")
    return Finding(name="/dev/shm", state="ok", detail=detail)


def _memory() -> Finding:
    machine = this_machine()
    detail = f"{byte_text(machine.free_memory)} free of {byte_text(machine.total_memory)}, {machine.cores} cores"
    state: State = "ok" if machine.free_memory >= _MIN_MEMORY else "limited"
    return Finding(name="memory", state=state, detail=detail, remedy="" if state == "ok" else "builds need 2 GiB and more")


def _disk(home: Home) -> Finding:
    folder = home.path
    while not folder.exists():
        folder = folder.parent
    free = psutil.disk_usage(str(folder)).free
    state: State = "ok" if free >= _MIN_DISK else "limited"
    remedy = "" if state == "ok" else "remove engines you no longer need: roundhouse engines remove"
    return Finding(name="disk", state=state, detail=f"{byte_text(free)} free for {home.path}", remedy=remedy)
