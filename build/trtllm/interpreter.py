"""The Python that TensorRT-LLM is installed in: this one, or another whose path is given.

Quantizing and TensorRT-LLM want different versions of torch and transformers, so that they mostly live apart. What runs over
there are scripts of ours (``host_probe.py``, ``rank_build.py``, ``guard_build.py``) that need nothing of this environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from roundhouse.errors import SetupError

from .versions import installed_version, target_verdicts

__all__ = [
    "PYTHON_VARIABLE",
    "Installation",
    "environment",
    "find_installation",
    "find_python",
    "run_there",
    "script",
    "version_there",
]

PYTHON_VARIABLE = "ROUNDHOUSE_TRTLLM_PYTHON"
"""The environment variable with the path of TensorRT-LLM's Python, where that is not this one."""
_ANSWER = "roundhouse-probe "
_IMPORT_SECONDS = 600.0
"""TensorRT-LLM takes a minute to import from a cold disk."""
_OF_THIS_PYTHON = ("PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
_OF_A_JOB = (
    "OMPI_COMM_WORLD_",
    "OMPI_UNIVERSE_",
    "OMPI_FIRST_",
    "OMPI_APP_CTX_",
    "OMPI_MCA_orte_",
    "ORTE_",
    "PMIX_",
    "PMI_",
    "SLURM_",
)
"""Variables of an MPI job that this process is part of: with them, a child takes itself for one of its ranks, and waits for it.

Upstream's Triton model ``llmapi`` drops those of MPI for the same reason, and keeps what is configuration, as we do.
"""
_CONFIGURATION = "PMIX_MCA_"


@dataclass(frozen=True)
class Installation:
    """A TensorRT-LLM that was imported: in which Python, and its versions."""

    python: Path
    version: str
    tensorrt: str
    """Empty where no engine is built or run: the other target needs no TensorRT."""


def find_python() -> Path:
    """TensorRT-LLM's Python, as an absolute path; nothing is started.

    Raises:
        SetupError: none is given and TensorRT-LLM is not in this one, or what is given cannot be run.
    """
    given = os.environ.get(PYTHON_VARIABLE)
    if given:
        found = shutil.which(given)
        if found is None:
            raise SetupError(f"{PYTHON_VARIABLE} is {given}, and that cannot be run", hint="Give the path of a Python.")
        # Processes start in folders of their own. Not resolved: a virtual environment's Python is a link to another one.
        return Path(found).absolute()
    if installed_version() is None:
        raise SetupError(
            "TensorRT-LLM is not installed in this environment",
            hint=f"Set {PYTHON_VARIABLE} to the Python that has it; in NVIDIA's container that is /usr/bin/python3.",
        )
    return Path(sys.executable)


def version_there() -> str | None:
    """The version of the TensorRT-LLM that builds would use, or None. Nothing of it is imported."""
    try:
        python = find_python()
    except SetupError:
        return None
    if python == Path(sys.executable):
        return installed_version()
    code = "from importlib.metadata import version; print(version('tensorrt_llm'))"
    try:
        answer = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=30, check=True, env=environment())
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def run_there(*arguments: str) -> tuple[str, int] | None:
    """Run a command of ours in TensorRT-LLM's Python, where that is given and another one: what it printed, and its exit code.

    Its errors go where this process's go. None where nothing but this Python is meant.

    Raises:
        SetupError: what is given cannot be run, or lacks this package.
    """
    if not os.environ.get(PYTHON_VARIABLE) or (python := find_python()) == Path(sys.executable):
        return None
    there = {key: value for key, value in environment().items() if key != PYTHON_VARIABLE}  # over there it is the Python
    try:
        asked = subprocess.run([python, "-c", "import roundhouse"], capture_output=True, env=there, check=False)
        if asked.returncode:
            raise SetupError(f"{python} cannot import this package", hint="Install it there too, beside TensorRT-LLM.")
        ran = subprocess.run(
            [python, "-m", "roundhouse", *arguments], stdout=subprocess.PIPE, text=True, env=there, check=False
        )
    except OSError as error:
        raise SetupError(f"{python} cannot be run: {error}") from None
    return ran.stdout, ran.returncode


def find_installation(target: str) -> Installation:
    """Import TensorRT-LLM in its Python, in a process of its own, and see that its version runs a target.

    Raises:
        SetupError: there is none, it cannot be imported (its own words are in the message), or its version does not run the
            target, in which case the target that it does run is named.
    """
    python = find_python()
    # TensorRT-LLM first: a version without engines says so, whether or not a TensorRT is beside it.
    wanted = ("tensorrt_llm", "tensorrt") if target == "tensorrt" else ("tensorrt_llm",)
    try:
        ran = subprocess.run(
            [python, script("host_probe"), *wanted],
            capture_output=True,
            text=True,
            timeout=_IMPORT_SECONDS,
            env=environment(),
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError(f"{python} could not be asked for its TensorRT-LLM: {error}") from None
    versions: dict[str, str] = {}
    for line in ran.stdout.splitlines():
        if line.startswith(_ANSWER):
            versions |= json.loads(line.removeprefix(_ANSWER))
    if "tensorrt_llm" in versions and (reason := target_verdicts(versions["tensorrt_llm"])[target]):
        raise SetupError(f"target {target}: {reason}", hint=f"It is the TensorRT-LLM of {python}.")
    for package, name in (("tensorrt_llm", "TensorRT-LLM"), ("tensorrt", "TensorRT")):
        if package in wanted and package not in versions:
            words = (ran.stderr.strip() or ran.stdout.strip() or f"it ended with {ran.returncode}").splitlines()[-1]
            raise SetupError(f"{python} has no {name} that can be imported: {words}")
    return Installation(python, versions["tensorrt_llm"], versions.get("tensorrt", ""))


def script(name: str) -> Path:
    """One of our scripts for TensorRT-LLM's Python, by its name."""
    return Path(__file__).with_name(f"{name}.py")


def environment(**changes: str) -> dict[str, str]:
    """For a process of TensorRT-LLM's Python: this one's, without its MPI job and the ways back to its own packages.

    PYTHONPATH stays where TensorRT-LLM's Python is this one.
    """
    left_out = (*_OF_THIS_PYTHON, *(["PYTHONPATH"] if os.environ.get(PYTHON_VARIABLE) else []))
    kept = {key: value for key, value in os.environ.items() if key not in left_out and not _is_of_a_job(key)}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"} | changes


def _is_of_a_job(variable: str) -> bool:
    return variable.startswith(_OF_A_JOB) and not variable.startswith(_CONFIGURATION)
