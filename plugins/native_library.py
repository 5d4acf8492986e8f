"""Compiles the native kernels on demand: once for each CPU, compiler and source, into a cache folder.

The sources lie in ``plugins/native/`` and in the wheel. They need a C++17 compiler with OpenMP and
nothing else; compiling takes a few seconds.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roundhouse.errors import SetupError

__all__ = ["FLAGS", "SOURCES", "Compiler", "compiled_library", "find_compiler"]

SOURCES = Path(__file__).with_name("native")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=off", "-fopenmp", "-fPIC", "-shared")
"""``-ffp-contract=off``: see ``native/vectors.h``. No fast math: a NaN must stay one."""

_TIMEOUT_S = 300
_SHOWN_LINES = 6
_INSTALL_HINT = "Install g++ or clang++ with OpenMP, or name one in the environment variable CXX."


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler that answers."""

    command: tuple[str, ...]
    version: str
    """The first line of what ``--version`` prints."""


def find_compiler() -> Compiler:
    """The compiler that ``CXX`` names, else c++, g++ or clang++.

    Raises:
        SetupError: there is none, or it does not answer.
    """
    named = os.environ.get("CXX")
    try:
        candidates = [shlex.split(named)] if named else [["c++"], ["g++"], ["clang++"]]
    except ValueError as error:
        raise SetupError(f"CXX={named}: {error}", hint=_INSTALL_HINT) from None
    found = next((command for command in candidates if command and shutil.which(command[0])), None)
    if found is None:
        raise SetupError("no C++ compiler found" if not named else f"CXX={named}: no such command", hint=_INSTALL_HINT)
    answer = _run([*found, "--version"])
    lines = answer.stdout.splitlines()
    if answer.returncode or not lines:
        raise SetupError(f"{shlex.join(found)} --version failed: {_last_lines(answer)}", hint=_INSTALL_HINT)
    return Compiler(tuple(found), lines[0])


def compiled_library(cache: Path) -> Path:
    """The shared library of the kernels for this CPU, compiled now unless the cache has it.

    Several processes may ask at once: one compiles, the others wait for it. A compilation that is cut
    short leaves nothing that would be taken for a library.

    Args:
        cache: folder for compiled libraries; made when absent.

    Raises:
        SetupError: it cannot be compiled here; the message says why.
    """
    if sys.platform != "linux":
        raise SetupError(f"the native kernels are built on Linux only, not on {sys.platform}")
    compiler = find_compiler()
    library = cache / f"kernels-{_key(compiler)}.so"
    try:
        if library.exists():
            return library
        cache.mkdir(parents=True, exist_ok=True)
        with _only_one(library.with_suffix(".lock")):
            if not library.exists():
                _compile(compiler, library)
    except OSError as error:
        raise SetupError(f"cannot keep compiled kernels in {cache}: {error.strerror}") from None
    return library


def _key(compiler: Compiler) -> str:
    """A name for everything that the compiled code depends on."""
    digest = hashlib.sha256()
    for part in (platform.machine(), _cpu_features(), *compiler.command, compiler.version, *FLAGS):
        digest.update(part.encode() + b"\0")
    for source in _sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _sources() -> list[Path]:
    return sorted(path for path in SOURCES.iterdir() if path.suffix in (".h", ".cpp"))


def _units() -> list[str]:
    return [str(path) for path in _sources() if path.suffix == ".cpp"]


def _cpu_features() -> str:
    """What ``-march=native`` looks at: a home folder may be shared by machines of several kinds."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return ""


@contextlib.contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Hold a lock that the system releases when this process ends, however it ends."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(compiler: Compiler, library: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".compiling-", dir=library.parent) as folder:
        made = Path(folder) / library.name
        answer = _run([*compiler.command, *FLAGS, *_units(), "-o", str(made)])
        if answer.returncode or not made.exists():
            raise SetupError(f"{compiler.version} could not compile the kernels: {_last_lines(answer)}", hint=_INSTALL_HINT)
        made.replace(library)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SetupError(f"{shlex.join(command[:1])} did not end within {_TIMEOUT_S} s") from None
    except OSError as error:
        raise SetupError(f"{shlex.join(command[:1])} cannot be run: {error.strerror}", hint=_INSTALL_HINT) from None


def _last_lines(answer: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (answer.stderr or answer.stdout).splitlines() if line.strip()]
    return "\n".join(lines[-_SHOWN_LINES:]) or f"exit code {answer.returncode}"
